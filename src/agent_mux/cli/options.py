"""Options that several commands share, and the completion of their values."""

from pathlib import Path
from typing import Annotated

import typer

from agent_mux._util.durations import parse_duration
from agent_mux._util.sizes import parse_size

Json = Annotated[bool, typer.Option("--json", help="Print JSON, including errors.", show_default=False)]
Compact = Annotated[
    bool, typer.Option("--compact", help="Omit accumulated text from delta events.", show_default=False)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show debug logs and tracebacks.", show_default=False)]
NoColor = Annotated[bool, typer.Option("--no-color", help="Disable colours (also NO_COLOR=1).", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the requested output.", show_default=False)]
ConfigDir = Annotated[
    Path | None,
    typer.Option(
        "--config-dir", help="Global directory (default ~/.agent-mux; $AGENT_MUX_CONFIG_DIR).", show_default=False
    ),
]
ProjectDir = Annotated[
    Path | None,
    typer.Option(
        "--project-dir",
        help="Project directory (default: nearest .agent-mux; $AGENT_MUX_PROJECT_DIR).",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="Run on a service (amux serve; default $AGENT_MUX_SERVER).", show_default=False
    ),
]
ServerTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--server-token-file",
        metavar="PATH",
        help="File with the service token (default $AGENT_MUX_SERVER_TOKEN).",
        show_default=False,
    ),
]


def size_in_bytes(text: str) -> int:
    """Parse a number of bytes, or a size with a unit such as `500MB` or `2GiB`."""
    return _size(text, "B")


def size_in_megabytes(text: str) -> int:
    """Parse a number of MB, or a size with a unit, and return bytes."""
    return _size(text, "MB")


def _size(text: str, bare: str) -> int:
    try:
        return parse_size(text, bare=bare)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def seconds(text: str) -> float:
    """Parse a number of seconds, or a duration with a unit such as `90s`, `10m` or `60000ms`."""
    try:
        return float(text) if text.strip().startswith("-") else parse_duration(text)  # the range is checked later
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def limit_in_seconds(text: str | float) -> float:
    """Parse a duration of an option with a default, which typer passes as a number: at least 0."""
    value = seconds(text) if isinstance(text, str) else text
    if value < 0:
        raise typer.BadParameter(f"{text} is less than 0; give a duration")
    return value
