"""The `hooks.json` files of the user and of a project: reading, changing and trusting them.

A project can come from anybody, and its registrations are programs that run as soon as an agent works in it. The file
of a project is therefore ignored unless the user has trusted exactly this content. Changes made through agent-mux keep
a trusted file trusted. A registration of a project overrides the global one with the same id. See
docs/spec/run-api.md, section 7.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from agent_mux._util.files import locked, read_text, write_text
from agent_mux._util.paths import OWN_NAME, config_dir, project_dir
from agent_mux._util.suggestions import did_you_mean
from agent_mux.agents.hooks.files import FILE_NAME
from agent_mux.agents.hooks.registrations import Registration, parse_registrations, registration_from
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents import DocumentError, empty_text, with_field, without_field

TRUST_FILE_NAME = "trusted-hooks.json"
"""The file with the hashes of trusted files, in the global directory."""
HookScope = Literal["global", "project"]


class HookFiles(msgspec.Struct, frozen=True):
    """The two `hooks.json` files that apply in one directory."""

    own: Path
    """The global directory."""
    project: Path | None
    """The `.agent-mux` of the project; None outside of projects."""

    @classmethod
    def around(cls, directory: Path, own: Path | None = None, project: Path | None = None) -> "HookFiles":
        """Return the files for a working directory. `project` replaces the search for the project's `.agent-mux`."""
        return cls(own or config_dir(), project_dir(directory, named=project))

    def path(self, scope: HookScope) -> Path | None:
        """Return the path of a scope's file, which may not exist."""
        folder = self.own if scope == "global" else self.project
        return None if folder is None else folder / FILE_NAME

    def read(self, scope: HookScope) -> tuple[Registration, ...]:
        """Return the registrations in a scope's file, trusted or not. Raises CONFIG_ERROR."""
        path = self.path(scope)
        if path is None or not os.path.lexists(path):  # needs no file descriptor, unlike opening the file
            return ()
        text = read_text(path)
        return () if text is None else parse_registrations(text, path)

    @property
    def untrusted(self) -> Path | None:
        """The project's file, if it exists and its content is not trusted."""
        path = self.path("project")
        return path if path is not None and path.is_file() and not is_trusted(path, self.own) else None

    def effective(self) -> tuple[Registration, ...]:
        """Return the registrations in effect, in the order of calling. Raises CONFIG_ERROR."""
        found = {one.id: one for one in self.read("global")}
        if self.untrusted is None:
            found |= {one.id: one for one in self.read("project")}
        return tuple(sorted(found.values(), key=lambda one: (one.priority, one.id)))


# Trust


def is_trusted(path: Path, own: Path) -> bool:
    """Return whether the content of a file is trusted. `own`: the global directory. Raises CONFIG_ERROR."""
    return _read_trusted(own).get(os.path.realpath(path)) == _fingerprint(path)


def trust(path: Path, own: Path) -> None:
    """Trust the present content of a file. `own`: the global directory. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
    trust_file = own / TRUST_FILE_NAME
    with locked(trust_file, locks=own / "locks"):
        known = {**_read_trusted(own), os.path.realpath(path): _fingerprint(path)}
        write_text(trust_file, json.dumps(known, indent=2, sort_keys=True) + "\n")


def trust_project(files: HookFiles) -> Path:
    """Trust the present content of the project's file. Returns its path.

    Raises VALIDATION_ERROR if there is no such file, CONFIG_ERROR if it is invalid.
    """
    path = files.path("project")
    if path is None or not path.is_file():
        message = "no hooks.json in this project; `amux hooks add ID HANDLER TARGET --scope project` creates one"
        raise AgentMuxError("VALIDATION_ERROR", message)
    files.read("project")
    trust(path, files.own)
    return path


def _fingerprint(path: Path) -> str:
    return hashlib.sha256((read_text(path) or "").encode()).hexdigest()


def _read_trusted(own: Path) -> dict[str, str]:
    """Return the hashes of trusted files, by their real paths."""
    trust_file = own / TRUST_FILE_NAME
    try:
        known = json.loads(read_text(trust_file) or "{}")
    except ValueError as error:
        message = f"{trust_file} is not JSON; remove it, and trust your projects again"
        raise AgentMuxError("CONFIG_ERROR", message) from error
    return known if isinstance(known, dict) else {}


# Changes


def add(files: HookFiles, scope: HookScope, registration: Registration, *, directory: Path) -> Path:
    """Add a registration to a file, and trust the new content. Returns the path of the file.

    `directory` is where a project's `.agent-mux` is created if there is none. Raises VALIDATION_ERROR if the id exists
    or the file was not trusted before, CONFIG_ERROR.
    """
    path = files.path(scope) or directory / OWN_NAME / FILE_NAME
    with locked(path, locks=files.own / "locks"):
        text = read_text(path)
        existing = () if text is None else parse_registrations(text, path)
        _check_trusted(path, files, scope, exists=text is not None)
        if any(one.id == registration.id for one in existing):
            message = f"{path} already contains a hook {registration.id!r}; remove it or choose another id"
            raise AgentMuxError("VALIDATION_ERROR", message)
        plain = registration.plain()
        registration_from(plain, "the new hook", path)
        base = empty_text("json") if text is None else text
        has_list = bool(existing) or '"hooks"' in base
        changed = _with_field(path, base, ("hooks", str(len(existing))) if has_list else ("hooks",),
                              plain if has_list else [plain])  # fmt: skip
        _write(path, changed, files, scope)
    return path


def change(files: HookFiles, scope: HookScope | None, name: str, fields: Mapping[str, object] | None) -> Path:
    """Set fields of a registration, or remove it (None). Returns the path of the file.

    Without a scope, the project's file is searched first. Raises VALIDATION_ERROR if the id does not exist,
    CONFIG_ERROR.
    """
    found = _find_scope(files, scope, name)
    path = files.path(found)
    assert path is not None  # noqa: S101  # it was found there
    with locked(path, locks=files.own / "locks"):
        text = read_text(path) or empty_text("json")
        _check_trusted(path, files, found, exists=True)
        index = next((index for index, one in enumerate(parse_registrations(text, path)) if one.id == name), None)
        if index is not None:
            entry = ("hooks", str(index))
            changed = _without_field(path, text, entry) if fields is None else text
            for field, value in (fields or {}).items():
                changed = _with_field(path, changed, (*entry, field), value)
            _write(path, changed, files, found)
    return path


def _find_scope(files: HookFiles, scope: HookScope | None, name: str) -> HookScope:
    scopes: tuple[HookScope, ...] = ("project", "global") if scope is None else (scope,)
    known = {one: [registration.id for registration in files.read(one)] for one in scopes}
    for one, ids in known.items():
        if name in ids:
            return one
    every = sorted({registered for ids in known.values() for registered in ids})
    hint = did_you_mean(name, every, "see `amux hooks list`")
    raise AgentMuxError("VALIDATION_ERROR", f"no hook is named {name!r}; {hint}")


def _check_trusted(path: Path, files: HookFiles, scope: HookScope, *, exists: bool) -> None:
    if scope == "project" and exists and not is_trusted(path, files.own):
        message = f"the hooks of {path} are not trusted; read the file, then `amux hooks trust`"
        raise AgentMuxError("VALIDATION_ERROR", message)


def _write(path: Path, text: str, files: HookFiles, scope: HookScope) -> None:
    parse_registrations(text, path)
    write_text(path, text, private=scope == "global")
    if scope == "project":
        trust(path, files.own)


def _with_field(path: Path, text: str, field: tuple[str, ...], value: object) -> str:
    try:
        return with_field(text, "json", field, value)
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be changed: {error}") from error


def _without_field(path: Path, text: str, field: tuple[str, ...]) -> str:
    try:
        return without_field(text, "json", field)
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be changed: {error}") from error
