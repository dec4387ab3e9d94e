"""All there is to do with hooks, on one object. Source: run API, section 7."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_mux._util.paths import OWN_NAME
from agent_mux.agents.hooks import hooks_json
from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.agents.hooks.hooks_json import HookFiles, HookScope
from agent_mux.agents.hooks.native_hooks import NativeHookInstaller
from agent_mux.agents.hooks.registrations import FILE_NAME, Registration, registration_from
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.hooks import ANY_AGENT, HookCall, HookOutcome


@dataclass(frozen=True, slots=True)
class RegistrationState:
    """A registration, and whether it counts."""

    registration: Registration
    scope: HookScope
    path: Path
    counts: bool
    """It is switched on, nobody replaces it, and its file is trusted."""
    why_not: str | None = None


class Hooks(NativeHookInstaller):
    """Registrations, and the agents that call them. Blocking."""

    def list(self) -> "list[RegistrationState]":
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
                found.append(RegistrationState(one, scope, path, why is None, why))  # type: ignore[arg-type]
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
        path = where.path(scope) or self._place() / OWN_NAME / FILE_NAME
        try:
            registration = registration_from(plain, "the new hook", path)
        except AgentMuxError as error:
            raise AgentMuxError("VALIDATION_ERROR", str(error).partition("cannot be used: ")[2]) from error
        if registration.agent != ANY_AGENT:
            registration = replace(registration, agent=self._adapters.get(registration.agent).agent)
        _check_target(registration)
        return hooks_json.add(where, scope, registration, directory=self._place())

    def remove(self, name: str, scope: HookScope | None = None) -> Path:
        """Register a handler no more. Returns the file. Raises VALIDATION_ERROR when there is none with this id."""
        return hooks_json.change(self._files(), scope, name, enabled=None)

    def enable(self, name: str, scope: HookScope | None = None) -> Path:
        """Call a handler again. As `remove`."""
        return hooks_json.change(self._files(), scope, name, enabled=True)

    def disable(self, name: str, scope: HookScope | None = None) -> Path:
        """Call a handler no more, and keep it. As `remove`."""
        return hooks_json.change(self._files(), scope, name, enabled=False)

    def trust(self) -> Path:
        """Let the registrations of the project count, as they are now. Returns the file."""
        return hooks_json.trust_project(self._files())

    def effective(self, directory: Path | None = None) -> tuple[Registration, ...]:
        """The registrations that count in a directory, in their order. Raises CONFIG_ERROR."""
        return self._files(directory).effective()

    def dispatch(self, call: HookCall) -> HookOutcome:
        """Ask everybody who is registered for this. Raises CONFIG_ERROR when the registrations cannot be read."""
        directory = Path(call.cwd) if call.cwd and Path(call.cwd).is_dir() else None
        return dispatch_call(call, self.effective(directory))

    def _files(self, directory: Path | None = None) -> HookFiles:
        return HookFiles.around(directory or self._place(), self._own, self._project)


def _check_target(registration: Registration) -> None:
    """What is registered can be called. Raises VALIDATION_ERROR, CONFIG_ERROR."""
    file, program = registration.file(), registration.target[0]
    if registration.handler == "command" and shutil.which(program) is None:
        raise AgentMuxError("VALIDATION_ERROR", f"{program} is not a program on PATH, nor an executable file")
    if registration.handler == "script" and (file is None or not file.is_file()):
        raise AgentMuxError("VALIDATION_ERROR", f"there is no file {file}; a script is a Python file with handle(call)")
    if registration.is_policy and file is not None:
        from agent_mux.sdk.policy import read_policy  # noqa: PLC0415  # rarely

        read_policy(file)
