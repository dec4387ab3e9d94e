"""What the commands about our own service have in common: its extra, its database, its directory."""

import os
from pathlib import Path
from typing import Annotated

import typer

from agent_mux.cli.errors import bad_input

VARIABLE = "AGENT_MUX_DATABASE_URL"
_NEEDED = (
    "aiosqlite",
    "alembic",
    "fastapi",
    "httpx",
    "prometheus_client",
    "sqlalchemy",
    "uvicorn",
    "websockets",
)

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help=f"postgresql://... or sqlite:///PATH, without a password; with one: ${VARIABLE}. Default: a SQLite file "
        "in the directory of the service.",
        show_default=False,
    ),
]


def require_extra(command: str) -> None:
    """Raises VALIDATION_ERROR when what the service is made of is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _NEEDED):
        raise bad_input(f"{command} needs the extra: pip install 'agent-mux[service]'")


def database_url(said: str | None) -> str | None:
    """The URL that is meant; None: the SQLite file of the service. Raises VALIDATION_ERROR.

    Arguments can be read by every user of the machine: a password is not taken from there.
    """
    from agent_mux.service.store.database import has_password

    if said is not None and has_password(said):
        raise bad_input(f"--database has a password in it, which every user here could see; set ${VARIABLE} instead")
    return said if said is not None else os.environ.get(VARIABLE) or None


def config_directory(said: Path | None) -> Path:
    """The global directory."""
    from agent_mux.paths import config_dir

    return (said or config_dir()).absolute()
