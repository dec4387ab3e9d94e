"""Instruction files: AGENTS.md and CLAUDE.md of the user, and of the working directory and all directories above it."""

import os
from collections.abc import Mapping
from pathlib import Path

from agent_loop.cli.errors import UsageError
from agent_loop.cli.home import agent_home
from agent_loop.cli.protocol import StartCommand

NAMES = ("AGENTS.md", "CLAUDE.md")
"""In each directory, the first of these that exists counts: projects link one to the other."""


def instruction_files(start: StartCommand, directory: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the files to load, the most specific last. Raises `UsageError` for a named file that cannot be read.

    Files that `start` names replace those that are found.
    """
    if start.agents_docs is None:
        return found_files(directory, environ)
    for path in start.agents_docs:
        if not os.access(directory / path, os.R_OK):
            raise UsageError(f"{path} cannot be read; pass an existing file to --agents-doc")
    return [directory / path for path in start.agents_docs]


def found_files(directory: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the user's own file, then those of the directories from the root to the working directory."""
    places = [*_homes(environ), *reversed(directory.parents), directory]
    found = (_file_in(place) for place in dict.fromkeys(places))
    return [path for path in found if path is not None]


def _homes(environ: Mapping[str, str]) -> list[Path]:
    """Return the directories with the user's own instructions: ours, or else that of Claude Code."""
    homes = []
    try:
        homes.append(agent_home(environ))
    except UsageError:
        return []
    if environ.get("HOME", "").startswith("/"):
        homes.append(Path(environ["HOME"], ".claude"))
    return next(([home] for home in homes if _file_in(home) is not None), [])


def _file_in(directory: Path) -> Path | None:
    return next((path for name in NAMES if (path := directory / name).is_file()), None)
