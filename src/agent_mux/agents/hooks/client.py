"""Managing and calling hooks: registrations, and agents with native hooks. See docs/spec/run-api.md, section 7."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_mux._util.paths import OWN_NAME
from agent_mux.agents.hooks import hooks_json
from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.agents.hooks.files import FILE_NAME
from agent_mux.agents.hooks.hooks_json import HookFiles, HookScope
from agent_mux.agents.hooks.native_hooks import NativeHookInstaller
from agent_mux.agents.hooks.registrations import Registration, registration_from
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.hooks import ANY_AGENT, HookCall, HookOutcome


@dataclass(frozen=True, slots=True)
class RegistrationState:
    """A registration, and whether it is in effect."""

    registration: Registration
    """The hook as registered."""
    scope: HookScope
    """Whether the user's file or the project's has it."""
    path: Path
    """Absolute path of that file."""
    counts: bool
    """Whether it is enabled, not overridden, and in a trusted file."""
    why_not: str | None = None
    """Why it is not in effect."""


class Hooks(NativeHookInstaller):
    """The registrations of a directory, and the agents that call them. Blocking."""

    def list(self, agent: str | None = None) -> "list[RegistrationState]":
        """Return the registrations that concern an agent, or all, in the order of calling.

        Raises CONFIG_ERROR, AGENT_NOT_FOUND.
        """
        wanted = None if agent is None else {ANY_AGENT, self._adapters.get(agent).agent}
        files = self._files()
        own, project = files.read("global"), files.read("project")
        untrusted = files.untrusted is not None
        overridden = set() if untrusted else {one.id for one in project}
        found = []
        for scope, registrations in (("global", own), ("project", project)):
            for one in registrations:
                why = self._why_not(one, scope == "project" and untrusted, scope == "global" and one.id in overridden)
                path = files.path(scope)  # type: ignore[arg-type]
                assert path is not None  # noqa: S101  # it was read
                found.append(RegistrationState(one, scope, path, why is None, why))  # type: ignore[arg-type]
        chosen = [one for one in found if wanted is None or one.registration.agent in wanted]
        return sorted(chosen, key=lambda one: (one.registration.priority, one.registration.id))

    @staticmethod
    def _why_not(one: Registration, untrusted: bool, overridden: bool) -> str | None:
        if untrusted:
            return "the file is not trusted; read it, then `amux hooks trust`"
        if overridden:
            return "overridden by the project's hook with the same id"
        return None if one.enabled else "disabled"

    def add(self, scope: HookScope = "global", **fields: Any) -> Path:
        """Register a handler. Returns the path of the file.

        Args:
            scope: `global` for the user, `project` for everybody who works on the project.
            **fields: The fields of `Registration`; `target` is a list of words, or a string as in the file.

        Raises:
            AgentMuxError: VALIDATION_ERROR for an existing id or an invalid field, CONFIG_ERROR for an unusable file.
        """
        files, names = self._files(), {"hook_type": "hookType"}
        plain = {names.get(name, name): value for name, value in fields.items() if value is not None}
        path = files.path(scope) or self._working_directory() / OWN_NAME / FILE_NAME
        try:
            registration = registration_from(plain, "the new hook", path)
        except AgentMuxError as error:
            raise AgentMuxError("VALIDATION_ERROR", str(error).partition("cannot be used: ")[2]) from error
        if registration.agent != ANY_AGENT:
            registration = replace(registration, agent=self._adapters.get(registration.agent).agent)
        _check_target(registration)
        return hooks_json.add(files, scope, registration, directory=self._working_directory())

    def remove(self, name: str, scope: HookScope | None = None) -> Path:
        """Remove a registration. Returns the path of the file. Raises VALIDATION_ERROR if the id does not exist."""
        return hooks_json.change(self._files(), scope, name, None)

    def enable(self, name: str, scope: HookScope | None = None) -> Path:
        """Enable a disabled registration. Returns and raises like `remove`."""
        return hooks_json.change(self._files(), scope, name, {"enabled": True})

    def disable(self, name: str, scope: HookScope | None = None) -> Path:
        """Disable a registration without removing it. Returns and raises like `remove`."""
        return hooks_json.change(self._files(), scope, name, {"enabled": False})

    def set(self, name: str, scope: HookScope | None = None, **fields: Any) -> Path:
        """Change fields of a registration: `priority`, `enabled`, `target`. Returns the path of the file.

        Raises VALIDATION_ERROR for an unknown id, field or value, CONFIG_ERROR.
        """
        changes = {name: value for name, value in fields.items() if value is not None}
        if not changes or not _CHANGEABLE.issuperset(changes):
            allowed = f"at least one of {', '.join(sorted(_CHANGEABLE))}"
            raise ValidationError([FieldError("fields", ", ".join(changes) or "none", allowed)])
        current = next((one.registration for one in self.list() if one.registration.id == name), None)
        if current is not None:
            try:
                _check_target(registration_from({**current.plain(), **changes}, "the hook", self._working_directory()))
            except AgentMuxError as error:
                raise AgentMuxError("VALIDATION_ERROR", str(error).rpartition("cannot be used: ")[2]) from error
        return hooks_json.change(self._files(), scope, name, changes)

    def trust(self) -> Path:
        """Trust the present registrations of the project. Returns the path of the file."""
        return hooks_json.trust_project(self._files())

    def effective(self, directory: Path | None = None) -> tuple[Registration, ...]:
        """Return the registrations in effect in a directory, in the order of calling. Raises CONFIG_ERROR."""
        return self._files(directory).effective()

    def dispatch(self, call: HookCall) -> HookOutcome:
        """Call all handlers registered for a call. Raises CONFIG_ERROR if the registrations cannot be read."""
        directory = Path(call.cwd) if call.cwd and Path(call.cwd).is_dir() else None
        return dispatch_call(call, self.effective(directory))

    def _files(self, directory: Path | None = None) -> HookFiles:
        return HookFiles.around(directory or self._working_directory(), self._own, self._project)


_CHANGEABLE = frozenset({"priority", "enabled", "target"})
"""Fields of a registration that `Hooks.set` changes."""


def _check_target(registration: Registration) -> None:
    """Check that a handler can be called. Raises VALIDATION_ERROR, CONFIG_ERROR."""
    file, program = registration.file(), registration.target[0]
    if registration.handler == "command" and shutil.which(program) is None:
        raise AgentMuxError("VALIDATION_ERROR", f"{program} is neither a program on PATH nor an executable file")
    if registration.handler == "script" and (file is None or not file.is_file()):
        raise AgentMuxError("VALIDATION_ERROR", f"{file} does not exist; a script is a Python file with handle(call)")
    if registration.is_policy and file is not None:
        from agent_mux.sdk.policy import read_policy  # noqa: PLC0415  # rarely needed

        read_policy(file)
