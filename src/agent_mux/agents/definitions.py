"""Skills and sub-agents in agents' folders: list, add, remove. See docs/spec/run-api.md, section 7.

A definition is copied atomically, and only if all of its files are inside it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_mux._util.files import make_directory
from agent_mux._util.suggestions import did_you_mean
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import AgentPaths, Scope
from agent_mux.sdk.documents.formats import read_header
from agent_mux.sdk.installation import AgentInstallation, DefinitionFolder, DefinitionFolders

MOST_FILES = 2000
MOST_BYTES = 100 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A skill or sub-agent in one of the folders that an agent reads."""

    agent: str
    """Registered name of the agent."""
    name: str
    """Name by which the agent knows it."""
    scope: Scope
    """Whether the folder belongs to the user (`global`), the project, or the project's local settings."""
    path: Path
    """The main file."""
    description: str | None = None
    """What it is for, from the header of the main file."""
    is_shared: bool = False
    """Whether the folder is shared with other agents."""
    problem: str | None = None
    """Why the agent does not load it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """The copying or removal of a definition, done or planned."""

    agent: str
    """Registered name of the agent."""
    name: str
    """Name of the definition."""
    source: Path | None
    """What is copied; None: the definition is removed."""
    target: Path
    """The folder or file that is written or removed."""
    files: tuple[Path, ...]
    """Paths relative to source and target."""
    replaces: bool = False
    """Whether a definition of the same name is replaced."""


class Definitions:
    """The skills, or the sub-agents, of all agents. Blocking."""

    def __init__(
        self,
        kind: str,
        part: Callable[[AgentInstallation], DefinitionFolders | None],
        installations: InstallationResolver | None = None,
    ) -> None:
        """Manage one kind of definitions.

        Args:
            kind: `skill` or `sub-agent`, for messages.
            part: Returns the folders for this kind from an agent's installation.
            installations: Default: those that this process finds.
        """
        self._kind = kind
        self._part = part
        self._installations = installations if installations is not None else InstallationResolver()

    def agents(self) -> tuple[str, ...]:
        """Return the agents that have folders for these definitions, sorted."""
        adapters = self._installations.adapters
        return tuple(adapter.agent for adapter in adapters if self._part(adapter.installation()) is not None)

    def where(self, agent: str) -> list[tuple[DefinitionFolder, Path]]:
        """Return the folders that an agent reads, including missing ones. Raises CAPABILITY_ERROR."""
        _, folders = self._folders_of(agent)
        paths = self._installations.paths()
        found = [(folder, folder.path(paths)) for folder in folders.folders]
        return [(folder, path) for folder, path in found if path is not None]

    def list(self, agent: str, *, scope: Scope | None = None) -> list[Definition]:
        """Return all definitions, including those that the agent does not load, with the reason.

        Raises CAPABILITY_ERROR.
        """
        name, folders = self._folders_of(agent)
        searched = [(folder, path) for folder, path in self.where(agent) if scope in {None, folder.scope}]
        found = [(folder, one) for folder, path in searched for one in _read_folder(name, folders, folder, path)]
        return [_with_objection(one, folder, self._installations.paths()) for folder, one in found]

    def add(  # noqa: PLR0913  # one parameter for each option of the command
        self, agent: str, source: Path, *, name: str | None = None, scope: Scope = "global", force: bool = False,
        dry_run: bool = False,
    ) -> DefinitionChange:  # fmt: skip
        """Copy a definition into an agent's folder.

        Args:
            agent: Name or alias.
            source: The folder of the definition, or its main file.
            name: The name of the copy; default: the name in the header, or else the name of the source.
            scope: Which folder to write to.
            force: Replace a definition of the same name.
            dry_run: Only return what would be copied.

        Raises:
            ValidationError: The source is not a definition, or the name is invalid or exists already.
            AgentMuxError: CAPABILITY_ERROR; CONFIG_ERROR if a file cannot be read or written. Nothing was changed.
        """
        agent_name, folders = self._folders_of(agent)
        main, root = _find_source(source, folders)
        header = read_header(main, folders.header)
        missing = [field for field in folders.required if not _is_text(header.get(field))]
        if missing:
            allowed = f"a header with {' and '.join(missing)}"
            raise ValidationError([FieldError("source", str(main), allowed)])
        target_name = name or str(header.get("name") or _bare_name(root, folders))
        folder = self._folder_to_write(agent_name, scope, agent)
        target = self._target(folder, folders, target_name)
        exists = target.exists()
        if exists and not force:
            allowed = f"a name that is not in {folder}; --force replaces it"
            raise ValidationError([FieldError("name", target_name, allowed)])
        files = tuple(files_of(root))
        if not dry_run:
            copy_into(root, target, private=scope == "global")
        return DefinitionChange(
            agent=agent_name, name=target_name, source=root, target=target, files=files, replaces=exists
        )

    def remove(self, agent: str, name: str, *, scope: Scope | None = None, dry_run: bool = False) -> DefinitionChange:
        """Remove a definition and its files from an agent's own folder. Raises like `add`."""
        agent_name, folders = self._folders_of(agent)
        matching = [one for one in self.list(agent, scope=scope) if not one.is_shared and name in _names(one, folders)]
        if not matching:
            names = sorted({one.name for one in self.list(agent)})
            hint = did_you_mean(name, names, f"it has: {', '.join(names) or 'none'}")
            raise ValidationError([FieldError("name", name, f"a {self._kind} of {agent_name}; {hint}")])
        main = matching[-1].path
        target = main.parent if folders.layout == "folder" else main
        check_inside(target, target.parent)
        files = tuple(files_of(target))
        if not dry_run:
            remove(target)
        return DefinitionChange(agent=agent_name, name=name, source=None, target=target, files=files)

    def _folders_of(self, agent: str) -> tuple[str, DefinitionFolders]:
        adapter, folders = self._installations.find(agent, self._part, f"{self._kind}s through agent-mux")
        return adapter.agent, folders

    def _folder_to_write(self, agent_name: str, scope: Scope, agent: str) -> Path:
        own = [path for folder, path in self.where(agent) if folder.scope == scope and not folder.is_shared]
        if not own:
            raise CapabilityError(agent_name, f"{self._kind}s for the scope {scope!r}")
        return own[0]

    def _target(self, folder: Path, folders: DefinitionFolders, name: str) -> Path:
        if not _NAME.fullmatch(name) or ".." in name:
            allowed = "1 to 64 letters, digits, dots, hyphens and underscores, starting with a letter or digit"
            raise ValidationError([FieldError("name", name, allowed)])
        target = folder / (name if folders.layout == "folder" else f"{name}{folders.file}")
        check_inside(target, folder)
        return target


def skills(installations: InstallationResolver | None = None) -> Definitions:
    """Return the skills of all agents."""
    return Definitions("skill", lambda parts: parts.skills, installations)


def subagents(installations: InstallationResolver | None = None) -> Definitions:
    """Return the sub-agents of all agents."""
    return Definitions("sub-agent", lambda parts: parts.subagents, installations)


def _read_folder(
    agent: str, folders: DefinitionFolders, folder: DefinitionFolder, path: Path, depth: int = 1
) -> Iterator[Definition]:
    is_folder = folders.layout == "folder"
    try:
        inside = sorted(path.iterdir())
    except OSError:  # usually because it does not exist
        return
    for one in inside:
        main = one / folders.file if is_folder else one
        if main.is_file() and (is_folder or folders.suffix_of(one.name) is not None):
            yield _read_definition(agent, folders, folder, main, _bare_name(one, folders))
        elif depth < folders.depth and not one.name.startswith(".") and not one.is_symlink():
            yield from _read_folder(agent, folders, folder, one, depth + 1)


def _read_definition(
    agent: str, folders: DefinitionFolders, folder: DefinitionFolder, main: Path, bare: str
) -> Definition:
    header: dict[str, Any] = {}
    problem = None
    try:
        header = read_header(main, folders.header)
        missing = [field for field in folders.required if not _is_text(header.get(field))]
        problem = f"its header lacks {' and '.join(missing)}" if missing else None
    except AgentMuxError as error:
        problem = error.message
    description = header.get("description")
    return Definition(
        agent=agent, name=str(header["name"]) if _is_text(header.get("name")) else bare, scope=folder.scope,
        path=main, description=description if isinstance(description, str) else None, is_shared=folder.is_shared,
        problem=problem,
    )  # fmt: skip


def _with_objection(one: Definition, folder: DefinitionFolder, paths: AgentPaths) -> Definition:
    """Add the reason why the agent does not load a valid definition from this folder, if there is one."""
    if one.problem is not None:
        return one
    try:
        return replace(one, problem=folder.objection(paths, one.path, one.name))
    except OSError as error:
        return replace(one, problem=f"cannot read {one.path}: {error.strerror or error}")


def _find_source(source: Path, folders: DefinitionFolders) -> tuple[Path, Path]:
    """Return the main file of a definition, and the file or folder to copy. Raises VALIDATION_ERROR."""
    source = source.absolute()
    if folders.layout == "file":
        if not source.is_file():
            raise ValidationError([FieldError("source", str(source), f"a file, for example <name>{folders.file}")])
        return source, source
    root = source.parent if source.is_file() and source.name == folders.file else source
    if not (root / folders.file).is_file():
        raise ValidationError([FieldError("source", str(source), f"a folder with {folders.file}")])
    return root / folders.file, root


def _bare_name(path: Path, folders: DefinitionFolders) -> str:
    return path.name if folders.layout == "folder" else path.name.removesuffix(folders.suffix_of(path.name) or "")


def _names(one: Definition, folders: DefinitionFolders) -> set[str]:
    return {one.name, _bare_name(one.path.parent if folders.layout == "folder" else one.path, folders)}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def files_of(source: Path) -> list[Path]:
    """Return the files of a definition, relative to it; for a single file, the empty path.

    Raises VALIDATION_ERROR for links that lead outside, special files, and too many or too large files.
    """
    if source.is_file():
        return [Path()]
    found, size = [], 0
    root = source.resolve()
    for directory, folders, names in os.walk(source):
        for name in (*folders, *names):
            path = Path(directory, name)
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
                raise _source_error(source, f"a folder without links to the outside ({path} is one)")
            if name in names and not path.is_file():
                raise _source_error(source, f"a folder of regular files ({path} is not one)")
        found += [Path(directory, name).relative_to(source) for name in names]
        size += sum(Path(directory, name).stat().st_size for name in names)
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise _source_error(source, f"a folder of at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB")
    return sorted(found)


def check_inside(target: Path, folder: Path) -> None:
    """Check that a target is a direct child of its folder and not a link. Raises VALIDATION_ERROR."""
    if target.parent != folder or target.name in {"", ".", ".."} or target.is_symlink():
        allowed = f"a name in {folder} that is not a symbolic link"
        raise ValidationError([FieldError("name", target.name, allowed)])


def copy_into(source: Path, target: Path, *, private: bool) -> None:
    """Copy a definition to its target, replacing what exists. Raises CONFIG_ERROR; the target is then unchanged."""
    try:
        make_directory(target.parent, private=private)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _replace(source, target, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {target}: {error.strerror or error}") from error


def remove(target: Path) -> None:
    """Delete the file or folder of a definition. Raises CONFIG_ERROR."""
    try:
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot remove {target}: {error.strerror or error}") from error


def _replace(source: Path, target: Path, staging: Path) -> None:
    """Copy the source to the staging folder, then rename; restore the old target if that fails."""
    fresh, old = staging / "new", staging / "old"
    if source.is_dir():
        shutil.copytree(source, fresh)
    else:
        shutil.copyfile(source, fresh)
    if target.exists():
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def _source_error(source: Path, allowed: str) -> ValidationError:
    return ValidationError([FieldError("source", str(source), allowed)])
