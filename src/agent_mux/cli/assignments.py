"""`KEY=VALUE` from the command line, and whole objects from files: what our own JSON files are to say."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent_mux.cli.errors import bad_input
from agent_mux.cli.inputs import read_bytes
from agent_mux.errors import AgentMuxError
from agent_mux.preferences.documents import parse_object, parse_value
from agent_mux.preferences.fields import takes_text


def assigned(assignments: Iterable[str]) -> dict[str, Any]:
    """Each key, which may lead into objects (`a.b`), with its value: JSON, or else text; None to remove the key."""
    told: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not all(key.split(".")):
            raise bad_input(f"KEY=VALUE is expected, got {assignment!r}")
        if key in told:
            raise bad_input(f"{key} is given twice")
        told[key] = value if value and takes_text(key) else _value(value)
    return told


def object_in(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or on standard input (`-`)."""
    try:
        return parse_object(read_bytes(path).decode(), str(path))
    except AgentMuxError as error:
        raise bad_input(error.message) from error
    except UnicodeDecodeError as error:
        raise bad_input(f"{path} is not UTF-8: byte {error.start}") from error


def _value(text: str) -> Any:
    if not text:
        return None
    try:
        return parse_value(text)
    except (ValueError, RecursionError):
        return text
