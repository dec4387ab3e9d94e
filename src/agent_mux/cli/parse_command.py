"""`amux parse`: what an agent printed, as events."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import Compact, Quiet

if TYPE_CHECKING:
    from agent_mux.run.ledger import Ledger

_BATCH = 256  # events written at once


@with_common_flags
def parse(
    context: typer.Context,  # noqa: ARG001  # the events are JSON anyway
    file: Annotated[
        str,
        typer.Argument(metavar="[FILE|-]", help="A transcript or a journal; - is standard input.", show_default=False),
    ] = "-",
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="Whose transcript it is; a journal says so itself.", show_default=False),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="Its native protocol; default: guessed.", show_default=False)
    ] = None,
    compact: Compact = False,
    quiet: Quiet = False,
) -> int:
    """Normalize what an agent printed: one event per line.

    FILE is the agent's standard output, or a two-way transcript ({"t": seconds, "dir": "->", "msg": ...} per line, with
    -> for what it was sent, <- for what it printed, <! for standard error), or the journal of a run. What became of its
    lines is said on standard error.
    """
    from agent_mux.cli.recordings import opened
    from agent_mux.events import encode_event
    from agent_mux.registry import AdapterRegistry

    with opened(file, agent, protocol, AdapterRegistry()) as recording:
        waiting: list[bytes] = []
        for event in recording.events:
            waiting.append(encode_event(event, accumulated=not compact) + b"\n")
            if len(waiting) >= _BATCH:
                sys.stdout.buffer.write(b"".join(waiting))
                waiting.clear()
        sys.stdout.buffer.write(b"".join(waiting))
    sys.stdout.flush()
    if not quiet:
        sys.stderr.write(account_of(recording.normalizer.ledger) + "\n")
    return 0


def account_of(ledger: "Ledger") -> str:
    """`12 lines: 9 mapped, 2 ignored (hook: it says nothing of its own), 1 unknown (new_kind)`."""
    from agent_mux.cli.terminal import one_line

    ignored = ", ".join(f"{kind}: {ledger.reasons[kind]}" for kind in sorted(ledger.ignored))
    unknown = ", ".join(sorted(ledger.unknown))
    parts = (
        f"{ledger.mapped} mapped",
        f"{ledger.ignored.total()} ignored" + (f" ({ignored})" if ignored else ""),
        f"{ledger.unknown.total()} unknown" + (f" ({unknown})" if unknown else ""),
    )
    return one_line(f"{ledger.lines} lines: " + ", ".join(parts), 2000)
