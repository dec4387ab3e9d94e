"""Options that several commands have, and how a command gets them."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs; errors, too.", show_default=False)]
Compact = Annotated[
    bool, typer.Option("--compact", help="Leave the text so far off the delta events.", show_default=False)
]
Debug = Annotated[bool, typer.Option("--debug", help="Say more: logs, and where errors happened.", show_default=False)]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; so does NO_COLOR.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what was asked for.", show_default=False)]
ConfigDir = Annotated[
    Path | None,
    typer.Option("--config-dir", help="Instead of ~/.agent-mux (or $AGENT_MUX_CONFIG_DIR).", show_default=False),
]
ProjectDir = Annotated[
    Path | None,
    typer.Option(
        "--project-dir",
        help="The project's .agent-mux, instead of looking for it (or $AGENT_MUX_PROJECT_DIR).",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="Run at a service (amux serve); default: $AGENT_MUX_SERVER.", show_default=False
    ),
]
ServerTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--server-token-file",
        metavar="PATH",
        help="A file with the token of the service; default: $AGENT_MUX_SERVER_TOKEN.",
        show_default=False,
    ),
]


def agent_names(incomplete: str) -> list[str]:
    """Names of agents that begin so."""
    from agent_mux.registry import AdapterRegistry

    return [name for name in AdapterRegistry().names() if name.startswith(incomplete)]


def profile_names(incomplete: str) -> list[str]:
    """Names of profiles of the current project, and of global ones, that begin so."""
    from agent_mux.paths import config_dir
    from agent_mux.profiles import profiles_of

    return [name for name in profiles_of(config_dir()).names() if name.startswith(incomplete)]
