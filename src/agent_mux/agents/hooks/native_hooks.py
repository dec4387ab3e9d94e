"""Installing our hooks in agents that have native hooks. See docs/spec/run-api.md, section 7."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agent_mux._util.files import locked, read_text, remove, write_text
from agent_mux._util.paths import config_dir
from agent_mux._util.suggestions import did_you_mean
from agent_mux.agents.config.changes import ConfigFileChange
from agent_mux.agents.hooks.agent_files import AgentHookFile, amux_program
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.config import AgentPaths, Scope
from agent_mux.sdk.hooks import HOOK_TYPES, HookType, NativeHooks
from agent_mux.sdk.registry import AdapterRegistry


@dataclass(frozen=True, slots=True)
class HookStatus:
    """How an agent calls hooks, and what is installed."""

    agent: str
    """Registered name of the agent."""
    kind: str
    """`native`: the agent can call hooks itself; `virtual`: runs call them, derived from their events."""
    types: tuple[HookType, ...]
    """The hook types that the agent supports natively."""
    installed: dict[Path, tuple[HookType, ...]]
    """The agent's files that contain our hooks, with the hook types."""
    consent: str | None = None
    """What the user has to do before the agent calls the hooks."""


class NativeHookInstaller:
    """Writes our hooks to agents' own files, and removes them. Blocking."""

    def __init__(
        self,
        adapters: AdapterRegistry | None = None,
        *,
        own: Path | None = None,
        directory: Path | None = None,
        project: Path | None = None,
    ) -> None:
        """Create an installer.

        Args:
            adapters: Default: the registered adapters.
            own: The global directory; default: `~/.agent-mux`.
            directory: The working directory, whose project is used; default: the current one.
            project: The `.agent-mux` of the project; default: found from the working directory.
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
    ) -> ConfigFileChange:
        """Add our hooks to an agent's file, unless they are there already.

        Args:
            agent: Registered name.
            scope: Which file. The hooks contain the path of `amux` on this machine, so do not commit the file.
            types: Hook types; default: all that the agent supports.
            program: The command that starts `amux`; default: the running one.
            dry_run: Only return the change.

        Raises:
            AgentMuxError: CAPABILITY_ERROR if the agent has no native hooks (its runs call them), AGENT_NOT_FOUND,
                VALIDATION_ERROR for an unsupported type, CONFIG_ERROR.
        """
        file = self._file(agent, scope)
        wanted = self._types(file, types)
        words = tuple(program) or amux_program()
        return self._write(file, lambda text: file.with_hooks(text, wanted, words), dry_run=dry_run)

    def uninstall(
        self, agent: str, *, scope: Scope = "global", types: Sequence[str] = (), dry_run: bool = False
    ) -> ConfigFileChange:
        """Remove our hooks from an agent's file and keep all others. Parameters and errors as for `install`."""
        file = self._file(agent, scope)
        wanted = self._types(file, types)

        def remove_ours(text: str | None) -> str | None:
            changed = None if text is None else file.without_hooks(text, wanted)
            return None if changed is None or (changed != text and file.is_empty(changed)) else changed

        return self._write(file, remove_ours, dry_run=dry_run)

    def status(self, agent: str | None = None) -> tuple[HookStatus, ...]:
        """Return the status of one agent or of all agents."""
        adapters = [*self._adapters] if agent is None else [self._adapters.get(agent)]
        return tuple(self._status(adapter.agent, adapter.installation().hooks) for adapter in adapters)

    def _status(self, agent: str, native: NativeHooks | None) -> HookStatus:
        if native is None:
            return HookStatus(agent, "virtual", (), {})
        texts = [(file, read_text(file.path)) for file in self._hook_files(agent, native)]
        found = {file.path: tuple(file.installed(text)) for file, text in texts}
        installed = {path: types for path, types in found.items() if types}
        steps = [native.consent] if installed and native.consent else []
        steps += [f"hooks are disabled in {file.path}" for file, text in texts if file.is_off(text)]
        return HookStatus(agent, "native", tuple(native.types), installed, "; ".join(steps) or None)

    def _hook_files(self, agent: str, native: NativeHooks) -> tuple[AgentHookFile, ...]:
        return _hook_files(agent, native, AgentPaths(environ=os.environ, project=self._working_directory()))

    def _file(self, agent: str, scope: Scope) -> AgentHookFile:
        adapter = self._adapters.get(agent)
        native = adapter.installation().hooks
        if native is None:
            hint = "runs with amux call them without installation"
            raise CapabilityError(adapter.agent, "native hooks", hint=hint)
        found = [file for file in self._hook_files(adapter.agent, native) if file.file.scope == scope]
        if not found:
            scopes = ", ".join(dict.fromkeys(file.scope for file in native.files))
            raise CapabilityError(adapter.agent, f"native hooks for the scope {scope!r}", hint=f"it has: {scopes}")
        return found[0]

    @staticmethod
    def _types(file: AgentHookFile, types: Sequence[str]) -> tuple[HookType, ...]:
        known = [kind for kind in HOOK_TYPES if kind in file.native.types]
        for kind in types:
            if kind not in known:
                hint = did_you_mean(kind, known, f"it has: {', '.join(known)}")
                raise AgentMuxError("VALIDATION_ERROR", f"{file.agent} has no hook {kind!r}; {hint}")
        return tuple(kind for kind in known if not types or kind in types)

    def _write(
        self, file: AgentHookFile, change: Callable[[str | None], str | None], *, dry_run: bool
    ) -> ConfigFileChange:
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
        return ConfigFileChange(file.path, file.file.format, before, after)

    def _working_directory(self) -> Path:
        return (self._directory or Path.cwd()).absolute()


def active_hook_types(
    agent: str, native: NativeHooks, environ: Mapping[str, str], directory: Path
) -> frozenset[HookType]:
    """Return the hook types for which an agent will call `amux` in a directory. Raises CONFIG_ERROR."""
    files = _hook_files(agent, native, AgentPaths(environ=environ, project=directory))
    texts = [(file, read_text(file.path)) for file in files]
    if any(file.is_off(text) for file, text in texts):
        return frozenset()
    return frozenset(kind for file, text in texts for kind in file.working(text))


def _hook_files(agent: str, native: NativeHooks, paths: AgentPaths) -> tuple[AgentHookFile, ...]:
    found = [(file, file.path(paths)) for file in native.files]
    return tuple(AgentHookFile(agent, native, file, paths, path) for file, path in found if path is not None)
