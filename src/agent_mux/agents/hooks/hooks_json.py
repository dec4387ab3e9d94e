"""Which files of projects somebody has read and trusted: by their path and what they say.

A repository can bring a `hooks.json`, and so programs that would run as soon as an agent works in it. So the file of a
project counts only as long as it says what it said when it was trusted; what we write ourselves into a file that was
trusted stays so.


Where registrations stand: `hooks.json` in our own directory, and in that of a project. Source: run API, section 7.

A project can come from anybody, and its registrations are programs to run: they count when somebody has trusted the
file as it is (`trust.py`). One of a project replaces the global one with its id.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from agent_mux._util.files import locked, read_text, write_text
from agent_mux._util.paths import OWN_NAME, config_dir, project_dir
from agent_mux.agents.hooks.registrations import FILE_NAME, Registration, parse_registrations, registration_from
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents import DocumentError, empty_text, with_field, without_field
from agent_mux.sdk.hooks import HookCall

TRUST_FILE_NAME = "trusted-hooks.json"


def is_trusted(path: Path, own: Path) -> bool:
    """It says what it said when somebody trusted it. `own`: the global directory. Raises CONFIG_ERROR."""
    return _known(own).get(os.path.realpath(path)) == _fingerprint(path)


def trust(path: Path, own: Path) -> None:
    """Trust a file as it is now. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
    book = own / TRUST_FILE_NAME
    with locked(book, locks=own / "locks"):
        known = {**_known(own), os.path.realpath(path): _fingerprint(path)}
        write_text(book, json.dumps(known, indent=2, sort_keys=True) + "\n")


def _fingerprint(path: Path) -> str:
    return hashlib.sha256((read_text(path) or "").encode()).hexdigest()


def _known(own: Path) -> dict[str, str]:
    book = own / TRUST_FILE_NAME
    try:
        known = json.loads(read_text(book) or "{}")
    except ValueError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{book} is not JSON; remove it, and trust your projects again") from error
    return known if isinstance(known, dict) else {}


HookScope = Literal["global", "project"]


@dataclass(frozen=True, slots=True)
class HookFiles:
    """The files that count for one directory."""

    own: Path
    """The global directory."""
    project: Path | None
    """The directory of the project; None: there is none."""

    @classmethod
    def around(cls, directory: Path, own: Path | None = None, project: Path | None = None) -> "HookFiles":
        """Those for what happens in this directory. `project`: instead of looking for it."""
        return cls(own or config_dir(), project_dir(directory, named=project))

    def path(self, scope: HookScope) -> Path | None:
        """The file of a scope, whether it is there or not."""
        folder = self.own if scope == "global" else self.project
        return None if folder is None else folder / FILE_NAME

    def read(self, scope: HookScope) -> tuple[Registration, ...]:
        """What stands in a file. Raises CONFIG_ERROR."""
        path = self.path(scope)
        if path is None or not os.path.lexists(path):  # a process without a free descriptor can know that, too
            return ()
        text = read_text(path)
        return () if text is None else parse_registrations(text, path)

    @property
    def untrusted(self) -> Path | None:
        """The file of the project, where it is there and nobody has trusted it as it is."""
        path = self.path("project")
        return path if path is not None and path.is_file() and not is_trusted(path, self.own) else None

    def effective(self) -> tuple[Registration, ...]:
        """What counts, in the order in which it is called. Raises CONFIG_ERROR."""
        found = {one.id: one for one in self.read("global")}
        if self.untrusted is None:
            found |= {one.id: one for one in self.read("project")}
        return tuple(sorted(found.values(), key=lambda one: (one.priority, one.id)))


def applying(registrations: Sequence[Registration], call: HookCall) -> tuple[Registration, ...]:
    """Those that are called for this, in their order."""
    return tuple(one for one in registrations if one.applies_to(call))


def add(files: HookFiles, scope: HookScope, registration: Registration, *, directory: Path) -> Path:
    """Write a registration. One in our own words is trusted with it, when the file was before.

    Returns the file. Raises VALIDATION_ERROR when the id is taken, CONFIG_ERROR.
    """
    path = files.path(scope) or directory / OWN_NAME / FILE_NAME
    with locked(path, locks=files.own / "locks"):
        text = read_text(path)
        there = () if text is None else parse_registrations(text, path)
        _require_trust(path, files, scope, is_there=text is not None)
        if any(one.id == registration.id for one in there):
            raise AgentMuxError(
                "VALIDATION_ERROR", f"{path} has a hook {registration.id!r} already; remove it, or take another id"
            )
        plain = registration.plain()
        registration_from(plain, "the new hook", path)
        base = empty_text("json") if text is None else text
        has_list = bool(there) or '"hooks"' in base
        changed = _edited(path, base, ("hooks", str(len(there))) if has_list else ("hooks",),
                          plain if has_list else [plain])  # fmt: skip
        _write(path, changed, files, scope)
    return path


def change(files: HookFiles, scope: HookScope | None, name: str, *, enabled: bool | None) -> Path:
    """Switch a registration on or off, or remove it (None). Without a scope: where it stands, the project first.

    Returns the file. Raises VALIDATION_ERROR when there is none with this id, CONFIG_ERROR.
    """
    found = _find(files, scope, name)
    path = files.path(found)
    assert path is not None  # noqa: S101  # it was found there
    with locked(path, locks=files.own / "locks"):
        text = read_text(path) or empty_text("json")
        _require_trust(path, files, found, is_there=True)
        at = next((at for at, one in enumerate(parse_registrations(text, path)) if one.id == name), None)
        if at is not None:
            place = ("hooks", str(at))
            changed = _edited(path, text, (*place, "enabled"), enabled) if enabled is not None else _cut(path, text, at)
            _write(path, changed, files, found)
    return path


def trust_project(files: HookFiles) -> Path:
    """Let the registrations of the project count, as they are now. Raises VALIDATION_ERROR where there are none."""
    path = files.path("project")
    if path is None or not path.is_file():
        raise AgentMuxError("VALIDATION_ERROR", "no project here has hooks; `amux hooks add --project` makes the file")
    files.read("project")
    trust(path, files.own)
    return path


def _find(files: HookFiles, scope: HookScope | None, name: str) -> HookScope:
    scopes: tuple[HookScope, ...] = ("project", "global") if scope is None else (scope,)
    known = {one: [registration.id for registration in files.read(one)] for one in scopes}
    for one, ids in known.items():
        if name in ids:
            return one
    every = sorted({registered for ids in known.values() for registered in ids})
    close = get_close_matches(name, every, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`amux hooks list` shows those there are"
    raise AgentMuxError("VALIDATION_ERROR", f"no hook is named {name!r}; {hint}")


def _require_trust(path: Path, files: HookFiles, scope: HookScope, *, is_there: bool) -> None:
    if scope == "project" and is_there and not is_trusted(path, files.own):
        read_first = f"the hooks of {path} are not trusted; read the file, then `amux hooks trust`"
        raise AgentMuxError("VALIDATION_ERROR", read_first)


def _write(path: Path, text: str, files: HookFiles, scope: HookScope) -> None:
    parse_registrations(text, path)
    write_text(path, text, private=scope == "global")
    if scope == "project":
        trust(path, files.own)


def _edited(path: Path, text: str, place: tuple[str, ...], value: object) -> str:
    try:
        return with_field(text, "json", place, value)
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be changed: {error}") from error


def _cut(path: Path, text: str, at: int) -> str:
    try:
        return without_field(text, "json", ("hooks", str(at)))
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be changed: {error}") from error
