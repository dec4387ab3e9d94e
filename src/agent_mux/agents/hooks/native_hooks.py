"""Agents that have hooks: told to call us, told no more, and asked what they are told. Source: run API, section 7."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from agent_mux._util.files import locked, read_text, remove, write_text
from agent_mux._util.paths import config_dir
from agent_mux.agents.config.changes import FileChange
from agent_mux.agents.hooks.agent_files import AgentHookFile, amux_program
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.config import AgentPaths, Scope
from agent_mux.sdk.hooks import HOOK_TYPES, HookType, NativeHooks
from agent_mux.sdk.registry import AdapterRegistry


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


class NativeHookInstaller:
    """The agents, and the files in which they are told. Blocking."""

    def __init__(
        self,
        adapters: AdapterRegistry | None = None,
        *,
        own: Path | None = None,
        directory: Path | None = None,
        project: Path | None = None,
    ) -> None:
        """Look at these.

        Args:
            adapters: Of the agents.
            own: The global directory.
            directory: Where the project is looked for; default: the current one.
            project: The `.agent-mux` of the project, instead of looking for it.
        """
        self._adapters = adapters if adapters is not None else AdapterRegistry()
        self._own = own or config_dir()
        self._directory = directory
        self._project = project

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
        texts = [(file, read_text(file.path)) for file in self._hook_files(agent, native)]
        there = {file.path: tuple(file.installed(text)) for file, text in texts}
        installed = {path: types for path, types in there.items() if types}
        todo = [native.consent] if installed and native.consent else []
        todo += [f"hooks are switched off in {file.path}" for file, text in texts if file.is_off(text)]
        return HookStatus(agent, "native", tuple(native.types), installed, "; ".join(todo) or None)

    def _hook_files(self, agent: str, native: NativeHooks) -> tuple[AgentHookFile, ...]:
        return _hook_files(agent, native, AgentPaths(environ=os.environ, project=self._place()))

    def _file(self, agent: str, scope: Scope) -> AgentHookFile:
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
    def _types(file: AgentHookFile, types: Sequence[str]) -> tuple[HookType, ...]:
        known = [kind for kind in HOOK_TYPES if kind in file.native.types]
        for kind in types:
            if kind not in known:
                close = get_close_matches(kind, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known)}"
                raise AgentMuxError("VALIDATION_ERROR", f"{file.agent} has no hook {kind!r}; {hint}")
        return tuple(kind for kind in known if not types or kind in types)

    def _write(self, file: AgentHookFile, change: Callable[[str | None], str | None], *, dry_run: bool) -> FileChange:
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
        return FileChange(file.path, file.file.format, before, after)

    def _place(self) -> Path:
        return (self._directory or Path.cwd()).absolute()


def active_hook_types(
    agent: str, native: NativeHooks, environ: Mapping[str, str], directory: Path
) -> frozenset[HookType]:
    """The hooks for which this agent calls us indeed when it works in this directory. Raises CONFIG_ERROR."""
    files = _hook_files(agent, native, AgentPaths(environ=environ, project=directory))
    texts = [(file, read_text(file.path)) for file in files]
    if any(file.is_off(text) for file, text in texts):
        return frozenset()
    return frozenset(kind for file, text in texts for kind in file.works(text))


def _hook_files(agent: str, native: NativeHooks, place: AgentPaths) -> tuple[AgentHookFile, ...]:
    paths = [(file, file.path(place)) for file in native.files]
    return tuple(AgentHookFile(agent, native, file, place, path) for file, path in paths if path is not None)
