"""Redaction of secrets, compared with framing, codec and assembler."""

import time
from collections.abc import Iterable
from pathlib import Path

from agent_mux.process.pump import CHUNK
from agent_mux.redaction import FragmentedText, RedactedStream, Redactor, UnfinishedSecrets
from agent_mux.sdk.framing import LineFramer
from benchmarks.measure import interleaved, report, verdict
from benchmarks.parsing import normalize
from benchmarks.synthetic import write_stream

LINES = 40_000
ROUNDS = 9
VALUES = [f"s3cret-{number}-" + "aB3" * 12 for number in range(20)]
"""As many secrets as a large environment contains."""
FRAGMENT = 8  # bytes of a delta: one or two tokens
PROSE = b"The service reads the file, checks each entry and prints what it found (12 ms). " * 4_000


def redact(chunks: Iterable[bytes]) -> None:
    """Redact all chunks of a stream."""
    stream = RedactedStream(Redactor(VALUES))
    for chunk in chunks:
        stream.feed(chunk)
    stream.flush()


def redact_fragments(text: bytes) -> None:
    """Redact a text that arrives in fragments."""
    joined = FragmentedText(UnfinishedSecrets(Redactor(VALUES)))
    for start in range(0, len(text), FRAGMENT):
        joined.add(text[start : start + FRAGMENT])
    joined.add(b"", is_end=True)


def frame(chunks: Iterable[bytes]) -> None:
    """Split the chunks into lines: the work that remains without redaction."""
    framer = LineFramer()
    for chunk in chunks:
        framer.feed(chunk)
    framer.finish()


def main(scratch: Path) -> None:
    """Print the throughput, and the share of the time of the pipeline."""
    data = write_stream(scratch / "redaction.jsonl", LINES).read_bytes()
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    lines = data.splitlines(keepends=True)
    seconds = interleaved(
        {
            "framing": lambda: frame(chunks),
            "pipeline": lambda: normalize(data),
            "chunks": lambda: redact(chunks),
            "lines": lambda: redact(lines),
            "fragments": lambda: redact_fragments(PROSE),
        },
        ROUNDS,
        time.process_time,
    )
    share = seconds.ratio("chunks", "pipeline")
    report(
        f"Redaction, {LINES:,} lines ({len(data) >> 20} MiB), {len(VALUES)} known values",
        [
            f"chunks of 64 KiB  {len(data) / seconds.typical('chunks') / 1e9:6.2f} GB/s",
            f"one line a chunk  {seconds.typical('lines') / LINES * 1e6:6.2f} us/line",
            f"one text, in deltas {seconds.typical('fragments') / (len(PROSE) / FRAGMENT) * 1e6:4.2f} us/delta",
            f"of framing alone  {seconds.ratio('chunks', 'framing'):6.2f} times as long",
            f"of the pipeline   {share:6.1%} {verdict(share, most=0.08)}",
        ],
    )
