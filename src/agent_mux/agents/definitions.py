"""Skills and sub-agents, on one object each. Source: run API, section 7.

Copying a definition into an agent's folder: whole or not at all, and nothing from outside of it.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_mux._util.files import make_directory
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import AgentPaths, Scope
from agent_mux.sdk.documents.formats import read_header
from agent_mux.sdk.installation import AgentInstallation, DefinitionFolders, Folder

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A skill or a sub-agent that an agent finds."""

    agent: str
    name: str
    scope: Scope
    path: Path
    """Of its main file."""
    description: str | None = None
    is_shared: bool = False
    problem: str | None = None
    """Why the agent will not take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What is done to a definition, or would be."""

    agent: str
    name: str
    source: Path | None
    """None: it is removed."""
    target: Path
    files: tuple[Path, ...]
    """Relative to both."""
    replaces: bool = False


class Definitions:
    """The skills, or the sub-agents, of all agents. Blocking."""

    def __init__(
        self,
        what: str,
        piece: Callable[[AgentInstallation], DefinitionFolders | None],
        homes: InstallationResolver | None = None,
    ) -> None:
        """Take what they are called, where an agent says of them, and where to look."""
        self._what = what
        self._piece = piece
        self._homes = homes if homes is not None else InstallationResolver()

    def where(self, agent: str) -> list[tuple[Folder, Path]]:
        """The folders that an agent looks into, whether they are there or not. Raises CAPABILITY_ERROR."""
        _, folders = self._of(agent)
        place = self._homes.place()
        paths = [(folder, folder.path(place)) for folder in folders.folders]
        return [(folder, path) for folder, path in paths if path is not None]

    def list(self, agent: str, *, scope: Scope | None = None) -> list[Definition]:
        """What an agent finds; also what it will not take, and why. Raises CAPABILITY_ERROR."""
        name, folders = self._of(agent)
        places = [(folder, path) for folder, path in self.where(agent) if scope in {None, folder.scope}]
        found = [(folder, one) for folder, path in places for one in _in_folder(name, folders, folder, path)]
        return [_judged(one, folder, self._homes.place()) for folder, one in found]

    def add(  # noqa: PLR0913  # one for each thing that a person may say
        self, agent: str, source: Path, *, name: str | None = None, scope: Scope = "global", force: bool = False,
        dry_run: bool = False,
    ) -> Placement:  # fmt: skip
        """Copy a definition into an agent's folder.

        Args:
            agent: Name or alias.
            source: The folder with its main file, or the file.
            name: What it is called there; default: as its header says, else as the source is called.
            scope: For whom.
            force: Also where there is one of this name.
            dry_run: Only say what would be done.

        Raises:
            ValidationError: A source that is none, a name that cannot be, or that is there already.
            AgentMuxError: CAPABILITY_ERROR; CONFIG_ERROR where it cannot be read or written. Then nothing was changed.
        """
        known, folders = self._of(agent)
        main, whole = _source(source, folders)
        header = read_header(main, folders.header)
        missing = [field for field in folders.required if not _is_text(header.get(field))]
        if missing:
            said = f"a header with {' and '.join(missing)}"
            raise ValidationError([FieldError("source", str(main), said)])
        called = name or str(header.get("name") or _bare_name(whole, folders))
        folder = self._folder(known, scope, agent)
        target = self._target(folder, folders, called)
        there = target.exists()
        if there and not force:
            allowed = f"a name that is not in {folder}; --force replaces it"
            raise ValidationError([FieldError("name", called, allowed)])
        files = tuple(files_of(whole))
        if not dry_run:
            copy_into(whole, target, private=scope == "global")
        return Placement(agent=known, name=called, source=whole, target=target, files=files, replaces=there)

    def remove(self, agent: str, name: str, *, scope: Scope | None = None, dry_run: bool = False) -> Placement:
        """Remove a definition from an agent's own folder, its files and all. Errors as for `add`."""
        known, folders = self._of(agent)
        there = [one for one in self.list(agent, scope=scope) if not one.is_shared and name in _names(one, folders)]
        if not there:
            names = sorted({one.name for one in self.list(agent)})
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(names) or 'none'}"
            raise ValidationError([FieldError("name", name, f"a {self._what} of {known}; {hint}")])
        main = there[-1].path
        target = main.parent if folders.layout == "folder" else main
        check_inside(target, target.parent)
        files = tuple(files_of(target))
        if not dry_run:
            remove(target)
        return Placement(agent=known, name=name, source=None, target=target, files=files)

    def _of(self, agent: str) -> tuple[str, DefinitionFolders]:
        adapter, folders = self._homes.find(agent, self._piece, f"{self._what}s in folders that are known")
        return adapter.agent, folders

    def _folder(self, known: str, scope: Scope, agent: str) -> Path:
        own = [path for folder, path in self.where(agent) if folder.scope == scope and not folder.is_shared]
        if not own:
            raise CapabilityError(known, f"{self._what}s for the scope {scope!r}")
        return own[0]

    def _target(self, folder: Path, folders: DefinitionFolders, name: str) -> Path:
        if not _NAME.fullmatch(name) or ".." in name:
            allowed = "1 to 64 letters, digits, dots, hyphens and underscores; it begins with a letter or a digit"
            raise ValidationError([FieldError("name", name, allowed)])
        target = folder / (name if folders.layout == "folder" else f"{name}{folders.file}")
        check_inside(target, folder)
        return target


def skills(homes: InstallationResolver | None = None) -> Definitions:
    """The skills of all agents."""
    return Definitions("skill", lambda home: home.skills, homes)


def subagents(homes: InstallationResolver | None = None) -> Definitions:
    """The sub-agents of all agents."""
    return Definitions("sub-agent", lambda home: home.subagents, homes)


def _in_folder(
    agent: str, folders: DefinitionFolders, folder: Folder, path: Path, depth: int = 1
) -> Iterator[Definition]:
    is_folder = folders.layout == "folder"
    try:
        inside = sorted(path.iterdir())
    except OSError:  # it is not there
        return
    for one in inside:
        main = one / folders.file if is_folder else one
        if (is_folder and main.is_file()) or (not is_folder and one.name.endswith(folders.file) and one.is_file()):
            yield _definition(agent, folders, folder, main, _bare_name(one, folders))
        elif depth < folders.depth and not one.name.startswith(".") and not one.is_symlink():
            yield from _in_folder(agent, folders, folder, one, depth + 1)


def _definition(agent: str, folders: DefinitionFolders, folder: Folder, main: Path, bare: str) -> Definition:
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


def _judged(one: Definition, folder: Folder, place: AgentPaths) -> Definition:
    """With what the agent has against it where it is."""
    if one.problem is not None:
        return one
    try:
        return replace(one, problem=folder.objection(place, one.path, one.name))
    except OSError as error:
        return replace(one, problem=f"cannot read {one.path}: {error.strerror or error}")


def _source(source: Path, folders: DefinitionFolders) -> tuple[Path, Path]:
    """The main file, and what is copied."""
    source = source.absolute()
    if folders.layout == "file":
        if not source.is_file():
            raise ValidationError([FieldError("source", str(source), f"a file, for example <name>{folders.file}")])
        return source, source
    whole = source.parent if source.is_file() and source.name == folders.file else source
    if not (whole / folders.file).is_file():
        raise ValidationError([FieldError("source", str(source), f"a folder with {folders.file}")])
    return whole / folders.file, whole


def _bare_name(path: Path, folders: DefinitionFolders) -> str:
    return path.name if folders.layout == "folder" else path.name.removesuffix(folders.file)


def _names(one: Definition, folders: DefinitionFolders) -> set[str]:
    return {one.name, _bare_name(one.path.parent if folders.layout == "folder" else one.path, folders)}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


MOST_FILES = 2000
MOST_BYTES = 100 << 20


def files_of(source: Path) -> list[Path]:
    """The files of a definition, relative to it; a single file is the empty way.

    Raises VALIDATION_ERROR for links that lead out of it, for what is neither file nor folder, and for too much.
    """
    if source.is_file():
        return [Path()]
    found, size = [], 0
    root = source.resolve()
    for directory, folders, names in os.walk(source):
        for name in (*folders, *names):
            path = Path(directory, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise _refused(source, f"a folder whose links stay inside of it ({path} leads out)")
            if name in names and not path.is_file():
                raise _refused(source, f"a folder of files ({path} is none)")
        found += [Path(directory, name).relative_to(source) for name in names]
        size += sum(Path(directory, name).stat().st_size for name in names)
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise _refused(source, f"a folder of at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB")
    return sorted(found)


def check_inside(target: Path, folder: Path) -> None:
    """A definition stays in its folder, whatever its name and whatever links are there. Raises VALIDATION_ERROR."""
    if target.parent != folder or target.name in {"", ".", ".."} or target.is_symlink():
        allowed = f"a place of its own in {folder} (no link to somewhere else)"
        raise ValidationError([FieldError("name", target.name, allowed)])


def copy_into(source: Path, target: Path, *, private: bool) -> None:
    """Put a definition in its place, instead of what is there. Raises CONFIG_ERROR; then what was there still is."""
    try:
        make_directory(target.parent, private=private)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _exchange(source, target, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {target}: {error.strerror or error}") from error


def remove(target: Path) -> None:
    """Remove a definition. Raises CONFIG_ERROR."""
    try:
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot remove {target}: {error.strerror or error}") from error


def _exchange(source: Path, target: Path, staging: Path) -> None:
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


def _refused(source: Path, allowed: str) -> ValidationError:
    return ValidationError([FieldError("source", str(source), allowed)])
