"""All there is to do with hooks, on one object. Source: run API, section 7."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_mux.config.files import Scope
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.hooks import files
from agent_mux.hooks.call import HOOK_TYPES, HookCall, HookType
from agent_mux.hooks.dispatch import Outcome, dispatched
from agent_mux.hooks.files import HookFiles, HookScope
from agent_mux.hooks.installing import FileChange, HookFile, amux_program
from agent_mux.hooks.native import NativeHooks
from agent_mux.hooks.registrations import ANY, Registration, registration_from
from agent_mux.paths import config_dir
from agent_mux.place import Place
from agent_mux.registry import AdapterRegistry
from agent_mux.storage import locked, read_text, remove, write_text


@dataclass(frozen=True, slots=True)
class Registered:
    """A registration, and whether it counts."""

    registration: Registration
    scope: HookScope
    path: Path
    counts: bool
    """It is switched on, nobody replaces it, and its file is trusted."""
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class HookStatus:
    """How an agent calls hooks."""

    agent: str
    kind: str
    """`native`: it can call them itself; `virtual`: runs made through the mux call them from their events."""
    types: tuple[HookType, ...]
    """Those that it knows itself."""
    installed: dict[Path, tuple[HookType, ...]]
    """The files in which it is told to call us, and for what."""
    consent: str | None = None
    """What a person has to do before it calls them."""


class Hooks:
    """Registrations, and the agents that call them. Blocking."""

    def __init__(
        self, adapters: AdapterRegistry | None = None, *, own: Path | None = None, directory: Path | None = None
    ) -> None:
        """`own`: the global directory; `directory`: where the project is looked for, by default the current one."""
        self._adapters = adapters if adapters is not None else AdapterRegistry()
        self._own = own or config_dir()
        self._directory = directory

    # -- registrations

    def list(self) -> "list[Registered]":
        """Everything that is registered, in the order in which it is called. Raises CONFIG_ERROR."""
        where = self._files()
        own, project = where.read("global"), where.read("project")
        untrusted = where.untrusted is not None
        replaced = set() if untrusted else {one.id for one in project}
        found = []
        for scope, several in (("global", own), ("project", project)):
            for one in several:
                why = self._why_not(one, scope == "project" and untrusted, scope == "global" and one.id in replaced)
                path = where.path(scope)  # type: ignore[arg-type]
                assert path is not None  # noqa: S101  # it was read
                found.append(Registered(one, scope, path, why is None, why))  # type: ignore[arg-type]
        return sorted(found, key=lambda one: (one.registration.priority, one.registration.id))

    @staticmethod
    def _why_not(one: Registration, untrusted: bool, replaced: bool) -> str | None:
        if untrusted:
            return "the file is not trusted; read it, then `amux hooks trust`"
        if replaced:
            return "the project has another with this id"
        return None if one.enabled else "switched off"

    def add(self, scope: HookScope = "global", **fields: Any) -> Path:
        """Register a handler. Returns the file.

        Args:
            scope: For all of a user's work, or for all who work on the project.
            **fields: Those of `Registration`; `target` is a list of words, or a text as in the file.

        Raises:
            AgentMuxError: VALIDATION_ERROR for an id that is taken, CONFIG_ERROR for what cannot be meant.
        """
        where, names = self._files(), {"hook_type": "hookType"}
        plain = {names.get(name, name): value for name, value in fields.items() if value is not None}
        path = where.path(scope) or self._place() / ".agent-mux" / "hooks.json"
        try:
            registration = registration_from(plain, "the new hook", path)
        except AgentMuxError as error:
            raise AgentMuxError("VALIDATION_ERROR", str(error).partition("cannot be used: ")[2]) from error
        if registration.agent != ANY:
            registration = replace(registration, agent=self._adapters.get(registration.agent).agent)
        _check_target(registration)
        return files.add(where, scope, registration, directory=self._place())

    def remove(self, name: str, scope: HookScope | None = None) -> Path:
        """Register a handler no more. Returns the file. Raises VALIDATION_ERROR when there is none with this id."""
        return files.change(self._files(), scope, name, enabled=None)

    def enable(self, name: str, scope: HookScope | None = None) -> Path:
        """Call a handler again. As `remove`."""
        return files.change(self._files(), scope, name, enabled=True)

    def disable(self, name: str, scope: HookScope | None = None) -> Path:
        """Call a handler no more, and keep it. As `remove`."""
        return files.change(self._files(), scope, name, enabled=False)

    def trust(self) -> Path:
        """Let the registrations of the project count, as they are now. Returns the file."""
        return files.trust_project(self._files())

    def effective(self, directory: Path | None = None) -> tuple[Registration, ...]:
        """The registrations that count in a directory, in their order. Raises CONFIG_ERROR."""
        return self._files(directory).effective()

    def dispatch(self, call: HookCall) -> Outcome:
        """Ask everybody who is registered for this. Raises CONFIG_ERROR when the registrations cannot be read."""
        directory = Path(call.cwd) if call.cwd and Path(call.cwd).is_dir() else None
        return dispatched(call, self.effective(directory))

    # -- agents

    def install(
        self,
        agent: str,
        *,
        scope: Scope = "global",
        types: Sequence[str] = (),
        program: Sequence[str] = (),
        dry_run: bool = False,
    ) -> FileChange:
        """Tell an agent to call us, in its own file. Nothing changes where it does already.

        Args:
            agent: Registered name.
            scope: Of the file. The command line names the `amux` of this machine: it belongs into no repository.
            types: Those of interest; default: all that the agent has.
            program: The words that start `amux`; default: this one.
            dry_run: Write nothing.

        Raises:
            AgentMuxError: CAPABILITY_ERROR when the agent has no hooks of its own (its runs call them),
                AGENT_NOT_FOUND, VALIDATION_ERROR for a type that it does not have, CONFIG_ERROR.
        """
        file = self._file(agent, scope)
        wanted = self._types(file, types)
        words = tuple(program) or amux_program()
        return self._write(file, lambda text: file.with_hooks(text, wanted, words), dry_run=dry_run)

    def uninstall(
        self, agent: str, *, scope: Scope = "global", types: Sequence[str] = (), dry_run: bool = False
    ) -> FileChange:
        """Tell it no more. What somebody else wrote stays as it is. As `install`."""
        file = self._file(agent, scope)
        wanted = self._types(file, types)

        def without(text: str | None) -> str | None:
            changed = None if text is None else file.without_hooks(text, wanted)
            return None if changed is None or (changed != text and file.is_empty(changed)) else changed

        return self._write(file, without, dry_run=dry_run)

    def status(self, agent: str | None = None) -> tuple[HookStatus, ...]:
        """How agents call hooks: one of them, or all."""
        adapters = [*self._adapters] if agent is None else [self._adapters.get(agent)]
        return tuple(self._status(adapter.agent, adapter.home().hooks) for adapter in adapters)

    def _status(self, agent: str, native: NativeHooks | None) -> HookStatus:
        if native is None:
            return HookStatus(agent, "virtual", (), {})
        there = {file.path: tuple(file.installed(read_text(file.path))) for file in self._hook_files(agent, native)}
        installed = {path: types for path, types in there.items() if types}
        return HookStatus(agent, "native", tuple(native.types), installed, native.consent if installed else None)

    def _hook_files(self, agent: str, native: NativeHooks) -> tuple[HookFile, ...]:
        return _hook_files(agent, native, Place(environ=os.environ, project=self._place()))

    def _file(self, agent: str, scope: Scope) -> HookFile:
        adapter = self._adapters.get(agent)
        native = adapter.home().hooks
        if native is None:
            instead = "runs made with amux call them from their events, without installing anything"
            raise CapabilityError(adapter.agent, "hooks of its own", hint=instead)
        found = [file for file in self._hook_files(adapter.agent, native) if file.file.scope == scope]
        if not found:
            scopes = ", ".join(dict.fromkeys(file.scope for file in native.files))
            raise CapabilityError(adapter.agent, f"hooks of the scope {scope}", hint=f"it has: {scopes}")
        return found[0]

    @staticmethod
    def _types(file: HookFile, types: Sequence[str]) -> tuple[HookType, ...]:
        known = [kind for kind in HOOK_TYPES if kind in file.native.types]
        for kind in types:
            if kind not in known:
                close = get_close_matches(kind, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known)}"
                raise AgentMuxError("VALIDATION_ERROR", f"{file.agent} has no hook {kind!r}; {hint}")
        return tuple(kind for kind in known if not types or kind in types)

    def _write(self, file: HookFile, change: Any, *, dry_run: bool) -> FileChange:
        with ExitStack() as stack:
            if not dry_run:
                stack.enter_context(locked(file.path, locks=self._own / "locks"))
            before = read_text(file.path)
            after = change(before)
            if after != before and not dry_run:
                if after is None:
                    remove(file.path)
                else:
                    write_text(file.path, after, private=file.file.scope != "project")
        return FileChange(file.path, before, after)

    def _files(self, directory: Path | None = None) -> HookFiles:
        return HookFiles.around(directory or self._place(), self._own)

    def _place(self) -> Path:
        return (self._directory or Path.cwd()).absolute()


def installed_in(agent: str, native: NativeHooks, environ: Mapping[str, str], directory: Path) -> frozenset[HookType]:
    """The hooks for which this agent calls us when it works in this directory. Raises CONFIG_ERROR."""
    files = _hook_files(agent, native, Place(environ=environ, project=directory))
    return frozenset(kind for file in files for kind in file.installed(read_text(file.path)))


def _hook_files(agent: str, native: NativeHooks, place: Place) -> tuple[HookFile, ...]:
    paths = [(file, file.path(place)) for file in native.files]
    return tuple(HookFile(agent, native, file, place, path) for file, path in paths if path is not None)


def _check_target(registration: Registration) -> None:
    """What is registered can be called. Raises VALIDATION_ERROR, CONFIG_ERROR."""
    file, program = registration.file(), registration.target[0]
    if registration.handler == "command" and shutil.which(program) is None:
        raise AgentMuxError("VALIDATION_ERROR", f"{program} is not a program on PATH, nor an executable file")
    if registration.handler == "script" and (file is None or not file.is_file()):
        raise AgentMuxError("VALIDATION_ERROR", f"there is no file {file}; a script is a Python file with handle(call)")
    if registration.is_policy and file is not None:
        from agent_mux.policy import read_policy  # noqa: PLC0415  # rarely

        read_policy(file)
