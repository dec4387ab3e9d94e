"""Our hooks in the agents' own configuration files: finding, adding and removing them as text. Writes nothing."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.config import AgentPaths, ConfigFile
from agent_mux.sdk.documents import DocumentError, FieldPath, empty_text, open_document, with_field, without_field
from agent_mux.sdk.documents.document import value_at
from agent_mux.sdk.hooks import HOOK_TYPES, HookType, NativeHooks

_ARGUMENTS = 4  # of our command line, after the program: hooks AGENT handle TYPE


def amux_program() -> tuple[str, ...]:
    """Return the command that starts this `amux` from any directory."""
    named = Path(sys.argv[0])
    if named.name == "amux" and named.is_file():
        return (str(named.absolute()),)
    neighbour = Path(sys.executable).with_name("amux")
    found = str(neighbour) if neighbour.is_file() else shutil.which("amux")
    return (str(Path(found).absolute()),) if found else (sys.executable, "-m", "agent_mux.cli.main")


def command_line(program: Sequence[str], agent: str, hook_type: HookType) -> str:
    """Return the command line that an agent runs for a hook."""
    return shlex.join([*program, "hooks", agent, "handle", hook_type])


def type_of(command: str, agent: str) -> HookType | None:
    """Return the hook type that one of our command lines handles; None for any other command line."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) <= _ARGUMENTS or words[-4:-1] != ["hooks", agent, "handle"]:
        return None
    return next((known for known in HOOK_TYPES if known == words[-1]), None)


@dataclass(frozen=True, slots=True)
class AgentHookFile:
    """A file of an agent that can contain hooks."""

    agent: str
    native: NativeHooks
    file: ConfigFile
    paths: AgentPaths
    path: Path

    def installed(self, text: str | None) -> dict[HookType, str]:
        """Return our command lines in the text, by hook type. Raises CONFIG_ERROR for invalid syntax."""
        if text is None:
            return {}
        data = self._data(text)
        found: dict[HookType, str] = {}
        for name in self._names(self.native.types):
            hooks = value_at(data, self._field(name), None)
            for command in () if hooks is None else self.native.commands(hooks):
                kind = type_of(command, self.agent)
                if kind is not None:
                    found[kind] = command
        return found

    def working(self, text: str | None) -> tuple[HookType, ...]:
        """Return the installed hook types whose program exists. Raises CONFIG_ERROR."""
        found = self.installed(text)
        return tuple(kind for kind, command in found.items() if shutil.which(shlex.split(command)[0]) is not None)

    def is_off(self, text: str | None) -> bool:
        """Return whether the file disables all hooks. Raises CONFIG_ERROR."""
        return text is not None and self.native.off(self._data(text))

    def with_hooks(self, text: str | None, types: Iterable[HookType], program: Sequence[str]) -> str:
        """Return the text with our hooks of these types; our hooks with another command line are replaced."""
        changed = empty_text(self.file.format) if text is None else text
        for path, value in (self.native.preamble or {}).items():
            if value_at(self._data(changed), path, None) is None:
                changed = self._set_field(changed, path, value)
        for kind in types:
            line = command_line(program, self.agent, kind)
            for name in self.native.types[kind]:
                changed = self._with_hook(changed, name, kind, line)
        return changed

    def without_hooks(self, text: str, types: Iterable[HookType]) -> str:
        """Return the text without our hooks of these types."""
        wanted = set(types)
        for name in self._names(wanted):
            text = self._without(text, name, lambda command: type_of(command, self.agent) in wanted)
        return text

    def is_empty(self, text: str) -> bool:
        """Return whether the text contains nothing but what we write into a new file."""
        data = self._data(text)
        for path in self.native.preamble or {}:
            data = {name: value for name, value in data.items() if name != path[0]}
        return not any(data.values())

    def _with_hook(self, text: str, name: str, kind: HookType, line: str) -> str:
        existing = value_at(self._data(text), self._field(name), None)
        if existing is not None and line in self.native.commands(existing):
            return text
        text = self._without(text, name, lambda command: type_of(command, self.agent) == kind)
        existing = value_at(self._data(text), self._field(name), None)
        wanted = self.native.add(existing, name, line)
        if existing is not None and type(wanted) is not type(existing):
            message = f"{'.'.join(self._field(name))} does not contain hooks of {self.agent}"
            raise self._config_error(DocumentError(message))
        if isinstance(existing, list) and wanted[: len(existing)] == existing:  # keep the formatting of existing hooks
            for index in range(len(existing), len(wanted)):
                text = self._set_field(text, (*self._field(name), str(index)), wanted[index])
            return text
        return self._set_field(text, self._field(name), wanted)

    def _without(self, text: str, name: str, is_ours: Callable[[str], bool]) -> str:
        existing = value_at(self._data(text), self._field(name), None)
        if existing is None or not any(map(is_ours, self.native.commands(existing))):
            return text
        wanted = self.native.remove(existing, is_ours)
        if not wanted:
            return self._apply(without_field, text, self._field(name))
        if isinstance(existing, list) and all(item in existing for item in wanted):
            for index in range(len(existing) - 1, -1, -1):
                if existing[index] not in wanted:
                    text = self._apply(without_field, text, (*self._field(name), str(index)))
            return text
        return self._set_field(text, self._field(name), wanted)

    def _names(self, types: Iterable[HookType]) -> list[str]:
        return list(dict.fromkeys(name for kind in types for name in self.native.types.get(kind, ())))

    def _field(self, name: str) -> FieldPath:
        return (*self.file.table(self.paths), *self.native.place(name))

    def _data(self, text: str) -> dict[str, Any]:
        try:
            return open_document(text, self.file.format).data()
        except DocumentError as error:
            raise self._config_error(error) from error

    def _set_field(self, text: str, path: FieldPath, value: Any) -> str:
        return self._apply(with_field, text, path, value)

    def _apply(self, change: Callable[..., str], text: str, path: FieldPath, *value: Any) -> str:
        try:
            return change(text, self.file.format, path, *value)
        except DocumentError as error:
            raise self._config_error(error) from error

    def _config_error(self, error: DocumentError) -> AgentMuxError:
        return AgentMuxError("CONFIG_ERROR", f"{self.path} cannot be changed: {error}")
