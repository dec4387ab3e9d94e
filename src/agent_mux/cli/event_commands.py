"""`amux parse`, `amux validate` and `amux schema`: event streams without a run."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli import exit_codes
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import Compact, Quiet

if TYPE_CHECKING:
    from agent_mux.contract import Breach
    from agent_mux.run.ledger import Ledger


_BATCH = 256  # events per write


@with_common_flags
def parse(
    context: typer.Context,  # noqa: ARG001  # the output is JSON in any case
    file: Annotated[
        str,
        typer.Argument(metavar="[FILE|-]", help="Transcript or journal (- = standard input).", show_default=False),
    ] = "-",
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="Agent of the transcript (not needed for a journal).", show_default=False),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="Native protocol (default: detected).", show_default=False)
    ] = None,
    compact: Compact = False,
    quiet: Quiet = False,
) -> int:
    """Convert native agent output to events, one per line.

    FILE is the agent's standard output, a two-way transcript ({"t": seconds, "dir": "->", "msg": ...} per line, with ->
    for input of the agent, <- for its output, <! for standard error), or the journal of a run. A summary of mapped,
    ignored and unknown lines is printed on standard error.
    """
    from agent_mux.cli.command_output import for_terminal
    from agent_mux.cli.recordings import open_source
    from agent_mux.events import encode_event
    from agent_mux.sdk.registry import AdapterRegistry

    with open_source(file, agent, protocol, AdapterRegistry()) as recording:
        waiting: list[bytes] = []
        for event in recording.events:
            waiting.append(for_terminal(encode_event(event, accumulated=not compact).decode()).encode() + b"\n")
            if len(waiting) >= _BATCH:
                sys.stdout.buffer.write(b"".join(waiting))
                waiting.clear()
        sys.stdout.buffer.write(b"".join(waiting))
    sys.stdout.flush()
    if not quiet:
        sys.stderr.write(format_ledger(recording.normalizer.ledger) + "\n")
    return 0


def format_ledger(ledger: "Ledger") -> str:
    """Format `12 lines: 9 mapped, 2 ignored (hook: no event of its own), 1 unknown (new_kind)`."""
    from agent_mux.cli.terminal import one_line

    ignored = ", ".join(f"{kind}: {ledger.reasons[kind]}" for kind in sorted(ledger.ignored))
    unknown = ", ".join(sorted(ledger.unknown))
    parts = (
        f"{ledger.mapped} mapped",
        f"{ledger.ignored.total()} ignored" + (f" ({ignored})" if ignored else ""),
        f"{ledger.unknown.total()} unknown" + (f" ({unknown})" if unknown else ""),
    )
    return one_line(f"{ledger.lines} lines: " + ", ".join(parts), 2000)


@with_common_flags
def validate(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Events, one per line (- = standard input).", show_default=False)
    ] = "-",
    partial: Annotated[bool, typer.Option("--partial", help="Allow an incomplete stream.", show_default=False)] = False,
) -> int:
    """Validate events; print violations and exit 1 if there are any."""
    from agent_mux.cli.inputs import read_bytes

    count, breaches = check_stream(read_bytes(file), complete=not partial)
    if context.obj.json:
        _print_violations_json(count, breaches)
    else:
        _print_violations(count, breaches)
    return exit_codes.GENERAL if breaches else exit_codes.OK


def check_stream(data: bytes, *, complete: bool) -> tuple[int, "list[Breach]"]:
    """Return the number of events and the violations. Raise PARSE_ERROR if no line is an event."""
    from agent_mux.contract import ContractChecker
    from agent_mux.errors import AgentMuxError
    from agent_mux.sdk.framing import split_lines

    lines = [line for line in split_lines([data]) if line and not line.isspace()]
    read = [_parse_object(line) for line in lines]
    if lines and not any(value is not None and "type" in value for value in read):
        raise AgentMuxError(
            "PARSE_ERROR",
            "not an event stream: no line has a type; pass the output of `amux run --json`",
        )
    checker = ContractChecker()
    # A line that is not an object counts as an event without fields: the checker reports the missing ones.
    breaches = [breach for value in read for breach in checker.feed(value if value is not None else {})]
    return len(lines), breaches + (checker.finish() if complete else [])


def _parse_object(line: bytes) -> dict[str, Any] | None:
    from agent_mux.sdk.native_json import load_object

    return load_object(line)


def _print_violations(count: int, breaches: "list[Breach]") -> None:
    from agent_mux.cli.terminal import one_line

    for breach in breaches:
        sys.stdout.write(one_line(str(breach), 1000) + "\n")
    summary = f"{len(breaches)} violations" if breaches else "valid"
    sys.stderr.write(f"{count} events: {summary}\n")


def _print_violations_json(count: int, breaches: "list[Breach]") -> None:
    import msgspec

    from agent_mux.cli.command_output import json_envelope

    data = {"valid": not breaches, "events": count, "breaches": msgspec.to_builtins(breaches)}
    sys.stdout.write(json_envelope(data) + "\n")


class SchemaKind(StrEnum):
    """The formats that `amux schema` describes."""

    EVENT = "event"
    RESULT = "result"
    COMMAND = "command"


@with_common_flags
def schema(
    context: typer.Context,  # noqa: ARG001  # the output is JSON in any case
    kind: Annotated[
        SchemaKind,
        typer.Argument(help="Event line, last line of `amux run --json`, or command of `amux run -i --json`."),
    ] = SchemaKind.EVENT,
    compact: Compact = False,
) -> int:
    """Print a JSON Schema (2020-12)."""
    import json as plain

    from agent_mux.api.result_schema import result_schema
    from agent_mux.events import json_schema
    from agent_mux.run.commands import command_schema

    describe = {
        SchemaKind.EVENT: lambda: json_schema(accumulated=not compact),
        SchemaKind.RESULT: result_schema,
        SchemaKind.COMMAND: command_schema,
    }
    sys.stdout.write(plain.dumps(describe[kind](), indent=2) + "\n")
    return 0
