"""What a text delta costs late in a long message against early: `accumulated` must not make it grow."""

import time
from pathlib import Path

from agent_mux.assembler import StreamAssembler, StreamContext
from agent_mux.facts import SessionKnown, TextDelta
from benchmarks.measure import report, verdict

DELTA = "twenty characters ok"
SMALL, LARGE = 10 * 1024, 10 * 1024 * 1024
BLOCK = 512
ROUNDS = 9


def _cost(accumulated: int) -> float:
    assembler = StreamAssembler(StreamContext(run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", agent="benchmark"))
    assembler.tell(SessionKnown("s"))
    fact = TextDelta(DELTA)
    for _ in range(accumulated // len(DELTA)):
        assembler.tell(fact)
        if len(assembler._emitter.out) > BLOCK:  # noqa: SLF001
            assembler.take()
    assembler.take()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(BLOCK):
            assembler.tell(fact)
        best = min(best, (time.perf_counter() - start) / BLOCK)
        assembler.take()
    return best


def main(_: Path) -> None:
    """Print the ratio."""
    pairs = [(_cost(SMALL), _cost(LARGE)) for _ in range(3)]
    small, large = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    report(
        "Cost of one text_delta in the assembler",
        [
            f"after 10 KiB {small * 1e6:5.2f} us, after 10 MiB {large * 1e6:5.2f} us",
            f"ratio {large / small:5.2f} {verdict(large / small, most=1.5)}",
        ],
    )
