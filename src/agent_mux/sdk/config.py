"""Where an agent keeps its files on this machine, and which configuration files it reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent_mux._util.files import read_text
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents import Document, DocumentError, FieldPath, Format, open_document


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPaths:
    """Where to look for what agents keep."""

    environ: Mapping[str, str]
    """`HOME` and the agent's own variables say where it keeps its files."""
    directory: Path | None = None
    """Instead: a copy of the agent's own directory, somewhere else."""

    project: Path | None = None
    """The directory that the agent works in; None: no project is meant."""

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or "~").expanduser()

    def home_of(self, variable: str, default: str) -> Path:
        """The agent's own directory: what its variable names, else `default`, which is below the home directory."""
        if self.directory is not None:
            return self.directory
        named = self.environ.get(variable)
        return Path(named) if named else self.home / default

    def project_file(self, *names: str) -> Path | None:
        """A file of the project; None where no project is meant."""
        return None if self.project is None else self.project.joinpath(*names)


Scope = Literal["global", "project", "local"]
"""For all of a user's work; for all who work on a project; for one user's work on a project."""
Kind = Literal["string", "number", "boolean", "list", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file, or a part of one, that an agent reads."""

    scope: Scope
    format: Format
    path: Callable[[AgentPaths], Path | None]
    """Whether it is there or not; where there may be several, the one that is there. None: no project is meant."""
    table: Callable[[AgentPaths], FieldPath] = lambda _: ()
    """The part of it that counts."""
    is_optional: bool = False
    """It is read and changed where it is there, and never made: there is another one for that. Its path may be None."""
    is_shared: bool = False
    """Other agents read it, too: what it says counts and can be removed, but nothing is added to it."""


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
    write: Callable[[str, Mapping[str, Any]], Mapping[FieldPath, Any]]
    """What to set for a model, where the file says this already: it may be a text, or a table with more in it.

    Raises `ValueError`, half a sentence, for a name that cannot be said there.
    """


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


def files_that_count(files: Iterable[ConfigFile], place: AgentPaths) -> Iterator[tuple[ConfigFile, Path]]:
    """With their paths, in their order; optional ones only where they are there."""
    for file in files:
        path = file.path(place)
        if path is not None and (not file.is_optional or path.exists()):
            yield file, path


def file_to_change(files: Iterable[ConfigFile], place: AgentPaths, scope: Scope) -> tuple[ConfigFile, Path] | None:
    """The last of a scope that is there, so that a change wins; else the one that is made. None: there is neither."""
    counting = files_that_count(files, place)
    found = [(file, path) for file, path in counting if file.scope == scope and not file.is_shared]
    there = [(file, path) for file, path in found if path.exists()]
    best = there or found
    return best[-1] if best else None


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and which file says it."""

    value: Any
    scope: Scope
    path: Path


def config_error(path: Path, error: DocumentError) -> AgentMuxError:
    """What is wrong with a file, and where."""
    return AgentMuxError("CONFIG_ERROR", f"{path}: {error}; correct it, or move it away")


def read_document(path: Path, form: Format) -> Document | None:
    """A file as a document; None where there is none. Raises CONFIG_ERROR with the place in the file."""
    text = read_text(path)
    try:
        return None if text is None else open_document(text, form)
    except DocumentError as error:
        raise config_error(path, error) from error
