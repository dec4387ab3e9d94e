"""The configuration contract: where an agent keeps its files on a machine, and which configuration files it reads."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from agent_mux._util.files import read_text
from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.documents import Document, DocumentError, FieldPath, Format, open_document


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPaths:
    """The directories in which to look for an agent's files."""

    environ: Mapping[str, str]
    """Environment with `HOME` and the agent's own variables, which determine its directories."""
    directory: Path | None = None
    """A copy of the agent's own directory, to be used instead; None: the environment determines the directory."""
    project: Path | None = None
    """Directory that the agent works in; None: only files outside of projects."""

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(os.path.expanduser(self.environ.get("HOME") or "~"))

    def home_of(self, variable: str, default: str) -> Path:
        """Return the agent's own directory: the value of its variable, or `default`, relative to the home directory."""
        if self.directory is not None:
            return self.directory
        configured = self.environ.get(variable)
        return Path(configured) if configured else self.home / default

    def project_file(self, *names: str) -> Path | None:
        """Return the path of a file in the project; None without a project."""
        return None if self.project is None else self.project.joinpath(*names)


Scope = Literal["global", "project", "local"]
"""`global`: all work of a user; `project`: all users of a project; `local`: one user in a project."""
FieldKind = Literal["string", "number", "boolean", "list", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile(Declaration):
    """A file that an agent reads, or a part of one."""

    scope: Scope
    format: Format
    path: Callable[[AgentPaths], Path | None]
    """Returns the path, which need not exist; of several alternatives, the existing one. None without a project."""
    table: Callable[[AgentPaths], FieldPath] = lambda _: ()
    """Returns the path of the table that the agent reads; empty: the whole file."""
    is_optional: bool = False
    """Whether the file is never created, because another file exists for that. Its path may be None."""
    is_shared: bool = False
    """Whether other agents read it too: its settings apply and can be removed, but none are added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigField(Declaration):
    """A documented field of an agent's configuration."""

    kind: FieldKind
    """Type of the value."""
    meaning: str
    """Description, as a phrase."""
    choices: tuple[str, ...] = ()
    """All allowed values of a string; empty: any value."""
    or_kinds: tuple[FieldKind, ...] = ()
    """Other kinds that the agent accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelField(Declaration):
    """How the configuration selects the model."""

    read: Callable[[Mapping[str, Any]], str | None]
    """Returns the model of a configuration in the form of `RunOptions.model`; None if it selects none."""
    write: Callable[[str, Mapping[str, Any]], Mapping[FieldPath, Any]]
    """Returns the fields to set for a model, given the current content of the file.

    Raises `ValueError` with a phrase for a name that the configuration cannot express.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig(Declaration):
    """The configuration of an agent: files, fields and checks."""

    files: tuple[ConfigFile, ...]
    """Later files override earlier ones."""
    fields: Mapping[str, ConfigField] = field(default_factory=dict)
    """Known fields by dotted name (see `documents.parse_field`). Agents always accept more."""
    model: ModelField | None = None
    check: Callable[[Path, Mapping[str, Any]], None] | None = None
    """Checks the content of a file beyond `fields`; raises CONFIG_ERROR. None: no further checks."""
    written: Callable[[FieldPath, Any], Any] | None = None
    """Returns how a value of a field is written, such as a duration with its unit. None: as it is given."""


def effective_files(files: Iterable[ConfigFile], paths: AgentPaths) -> Iterator[tuple[ConfigFile, Path]]:
    """Yield the files with their paths, in order, without optional files that do not exist."""
    for file in files:
        path = file.path(paths)
        if path is not None and (not file.is_optional or path.exists()):
            yield file, path


def file_to_change(files: Iterable[ConfigFile], paths: AgentPaths, scope: Scope) -> tuple[ConfigFile, Path] | None:
    """Return the last existing file of a scope, so that a change takes effect, or else the file to create.

    None if the agent has no file of this scope.
    """
    effective = effective_files(files, paths)
    candidates = [(file, path) for file, path in effective if file.scope == scope and not file.is_shared]
    existing = [(file, path) for file, path in candidates if path.exists()]
    best = existing or candidates
    return best[-1] if best else None


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """An effective value and the file that sets it."""

    value: Any
    """The value, as parsed from the file."""
    scope: Scope
    """Whether the file belongs to the user (`global`), the project, or the project's local settings."""
    path: Path
    """Absolute path of the file."""


def config_error(path: Path, error: DocumentError) -> AgentMuxError:
    """Return the CONFIG_ERROR for an invalid file, with the position of the problem."""
    return AgentMuxError("CONFIG_ERROR", f"{path}: {error}; correct it, or move it away")


def read_document(path: Path, form: Format) -> Document | None:
    """Read a file as a document; None if it does not exist. Raises CONFIG_ERROR with the position of the problem."""
    text = read_text(path)
    try:
        return None if text is None else open_document(text, form)
    except DocumentError as error:
        raise config_error(path, error) from error
