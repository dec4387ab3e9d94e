"""`amux validate`: does a stream of events keep the contract?"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli import exit_codes
from agent_mux.cli.decorators import with_common_flags

if TYPE_CHECKING:
    from agent_mux.contract import Breach


@with_common_flags
def validate(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Events, one per line; - is standard input.", show_default=False)
    ] = "-",
    partial: Annotated[
        bool, typer.Option("--partial", help="It is a beginning: nothing is missing at its end.", show_default=False)
    ] = False,
) -> int:
    """Check a stream of events against the contract; exit 1 and tell the breaches, one per line."""
    from agent_mux.cli.inputs import read_bytes

    count, breaches = check(read_bytes(file), complete=not partial)
    if context.obj.json:
        _print_json(count, breaches)
    else:
        _print(count, breaches)
    return exit_codes.GENERAL if breaches else exit_codes.OK


def check(data: bytes, *, complete: bool) -> tuple[int, "list[Breach]"]:
    """How many events there are, and what is wrong. Raises PARSE_ERROR when no line is an event at all."""
    from agent_mux.contract import ContractChecker
    from agent_mux.errors import AgentMuxError
    from agent_mux.framing import lines_of

    lines = [line for line in lines_of([data]) if line and not line.isspace()]
    read = [_object(line) for line in lines]
    if lines and not any(value is not None and "type" in value for value in read):
        raise AgentMuxError("PARSE_ERROR", "this is no stream of events: no line is a JSON object with a type")
    checker = ContractChecker()
    # A line that is no object is an event without any field: the checker says what it lacks.
    breaches = [breach for value in read for breach in checker.feed(value if value is not None else {})]
    return len(lines), breaches + (checker.finish() if complete else [])


def _object(line: bytes) -> dict[str, Any] | None:
    from agent_mux.native_json import load_object

    return load_object(line)


def _print(count: int, breaches: "list[Breach]") -> None:
    from agent_mux.cli.terminal import one_line

    for breach in breaches:
        sys.stdout.write(one_line(str(breach), 1000) + "\n")
    summary = f"{len(breaches)} breaches" if breaches else "the contract is kept"
    sys.stderr.write(f"{count} events: {summary}\n")


def _print_json(count: int, breaches: "list[Breach]") -> None:
    import msgspec

    from agent_mux.cli.json_output import envelope

    data = {"valid": not breaches, "events": count, "breaches": msgspec.to_builtins(breaches)}
    sys.stdout.write(envelope(data) + "\n")
