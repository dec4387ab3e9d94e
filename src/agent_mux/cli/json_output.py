"""JSON for programs: the answer of a command with `--json`."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_mux.cli.server import Service


@dataclass(slots=True)
class Invocation:
    """What holds for the whole command line. It is the `obj` of typer's context."""

    json: bool = False
    """Print JSON, for programs; errors, too."""
    debug: bool = False
    no_color: bool = False
    service: "Service | None" = None
    """Who is asked instead of this machine."""


def envelope(data: Any) -> str:
    """The answer of a command with `--json`."""
    from agent_mux.plain_json import to_json

    return to_json({"ok": True, "data": data})


def print_json(data: Any) -> None:
    """The answer of a command, for programs."""
    sys.stdout.write(envelope(data) + "\n")


def tell(invocation: "Invocation", sentence: str, data: Any) -> int:
    """What was done: a sentence for people, data for programs."""
    from agent_mux.cli.terminal import one_line

    if invocation.json:
        print_json(data)
    else:
        sys.stderr.write(f"{one_line(sentence, 1000)}\n")
    return 0


def say(sentence: str) -> None:
    """Something for people that is not the answer itself."""
    from agent_mux.cli.terminal import homely

    sys.stderr.write(f"{homely(sentence)}\n")
