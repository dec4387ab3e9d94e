"""The contract: which files an agent reads its configuration from, and what may stand in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent_mux.documents import FieldPath, Format
from agent_mux.place import Place

Scope = Literal["global", "project", "local"]
"""For all of a user's work; for all who work on a project; for one user's work on a project."""
Kind = Literal["string", "number", "boolean", "list", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file, or a part of one, that an agent reads."""

    scope: Scope
    format: Format
    path: Callable[[Place], Path | None]
    """Whether it is there or not; where there may be several, the one that is there. None: no project is meant."""
    table: Callable[[Place], FieldPath] = lambda _: ()
    """The part of it that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field that is known: as the agent's documentation and the agent itself have it."""

    kind: Kind
    meaning: str
    """Half a sentence."""
    choices: tuple[str, ...] = ()
    """All there are, of a string; empty: any value."""
    or_kinds: tuple[Kind, ...] = ()
    """What it may be instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelField:
    """Where the configuration says which model is used."""

    read: Callable[[Mapping[str, Any]], str | None]
    """The model that this configuration names, as `RunOptions.model` would."""
    write: Callable[[str], Mapping[FieldPath, Any]]
    """What to set for a model. Raises `ValueError`, half a sentence, for a name that cannot be said there."""
    write_over: Callable[[str, Mapping[str, Any]], Mapping[FieldPath, Any]] | None = None
    """Instead, where it depends on what the file says already: a model may be a text, or a table with more in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """An agent's configuration."""

    files: tuple[ConfigFile, ...]
    """The later ones win."""
    fields: Mapping[str, Field] = field(default_factory=dict)
    """By name, as in `documents.parse_field`. There are always more than these."""
    model: ModelField | None = None
    check: Callable[[Path, Mapping[str, Any]], None] | None = None
    """What else a file has to keep to; raises CONFIG_ERROR. None: nobody knows more than `fields`."""
