"""Commands that can ask a service (`amux serve`) instead of this machine: `--server URL`, said outright.

`$AGENT_MUX_SERVER` alone moves only `amux run`: what a listing is about should not change with the environment.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import extended, keyword
from agent_mux.cli.options import ServerTokenFile

if TYPE_CHECKING:
    from agent_mux.cli.server import Service

_LOCAL = {"directory": "--dir", "config_dir": "--config-dir", "project_dir": "--project-dir"}
"""Options about files of this machine."""
_Asked = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Ask a service (amux serve) instead.", show_default=False),
]
_ADDED = {"server": _Asked, "server_token_file": ServerTokenFile}


def can_ask_a_service(function: Callable[..., int]) -> Callable[..., int]:
    """The command `function(context, ...)` with `--server` and `--server-token-file`, which go to `context.obj`."""

    def command(**given: Any) -> int:
        url, token_file = (given.pop(name) for name in _ADDED)
        given["context"].obj.service = _service(url, token_file, given)
        return function(**given)

    return extended(command, function, [keyword(name, kind, default=None) for name, kind in _ADDED.items()])


def _service(url: str | None, token_file: Path | None, given: dict[str, Any]) -> "Service | None":
    if url is None and token_file is None:
        return None
    from agent_mux.cli.server import named_service

    local = [flag for name, flag in _LOCAL.items() if given.get(name) is not None]
    return named_service(url, token_file, local)
