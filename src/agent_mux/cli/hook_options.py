"""What the commands about hooks have in common."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agent_mux.hooks.client import Hooks

Cwd = Annotated[Path | None, typer.Option("--cwd", help="Look for the project here.", show_default=False)]


def client_for(cwd: Path | None, config_dir: Path | None, project_dir: Path | None = None) -> "Hooks":
    """The hooks that these flags mean. Raises VALIDATION_ERROR."""
    from agent_mux.cli.errors import bad_input
    from agent_mux.hooks.client import Hooks

    if cwd is not None and not cwd.is_dir():
        raise bad_input(f"--cwd {cwd} is no directory")
    return Hooks(own=config_dir, directory=cwd, project=project_dir)
