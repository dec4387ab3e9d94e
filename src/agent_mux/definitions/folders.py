"""The contract: where an agent looks for skills and sub-agents, and what they have to be."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_mux.config.files import Scope
from agent_mux.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One place that the agent looks into."""

    scope: Scope
    path: Callable[[Place], Path | None]
    """Whether it is there or not. None: no project is meant."""
    is_shared: bool = False
    """Other agents look there, too (`.agents/skills`): it is listed, and written only when asked for."""
    objection: Callable[[Place, Path, str], str | None] = lambda _place, _path, _name: None
    """Why the agent does not take a definition there (its main file and name), which is as it should be. None: it does.
    May raise `OSError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFolders:
    """Skills, or sub-agents, of an agent."""

    folders: tuple[Folder, ...]
    layout: Literal["folder", "file"]
    """A folder of its own with one main file (`<name>/SKILL.md`), or one file (`<name>.md`)."""
    file: str
    """The main file of the folder, or the ending of the file: `SKILL.md`, `.md`."""
    header: Literal["yaml", "toml"] = "yaml"
    """How name and description are told: YAML between lines of three hyphens, or the file is TOML."""
    required: tuple[str, ...] = ("name", "description")
    """What the header has to say for the agent to take it."""
    depth: int = 1
    """Where there may be folders of folders (`<group>/<name>/SKILL.md`): how deep the agent looks."""
