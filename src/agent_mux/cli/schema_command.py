"""`amux schema`: the JSON Schema of what `amux` prints and reads."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import Compact


class Kind(StrEnum):
    """What can be described."""

    EVENT = "event"
    RESULT = "result"
    COMMAND = "command"


@with_common_flags
def schema(
    context: typer.Context,  # noqa: ARG001  # it is JSON anyway
    kind: Annotated[
        Kind,
        typer.Argument(help="An event line, the last line of `amux run --json`, or a command of `amux run -i --json`."),
    ] = Kind.EVENT,
    compact: Compact = False,
) -> int:
    """Print a JSON Schema (2020-12)."""
    import json as plain

    from agent_mux.events import json_schema
    from agent_mux.run.commands import command_schema
    from agent_mux.run.result_schema import result_schema

    describe = {
        Kind.EVENT: lambda: json_schema(accumulated=not compact),
        Kind.RESULT: result_schema,
        Kind.COMMAND: command_schema,
    }
    sys.stdout.write(plain.dumps(describe[kind](), indent=2) + "\n")
    return 0
