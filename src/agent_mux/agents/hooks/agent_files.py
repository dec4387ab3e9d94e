"""Telling agents to call us: their own files, changed in place and restored. Nothing here writes."""

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

_TAIL = 4  # words of our command line behind the program: hooks AGENT handle TYPE


def amux_program() -> tuple[str, ...]:
    """The words that start this `amux`, wherever they are said."""
    named = Path(sys.argv[0])
    if named.name == "amux" and named.is_file():
        return (str(named.absolute()),)
    beside = Path(sys.executable).with_name("amux")
    found = str(beside) if beside.is_file() else shutil.which("amux")
    return (str(Path(found).absolute()),) if found else (sys.executable, "-m", "agent_mux.cli.main")


def command_line(program: Sequence[str], agent: str, hook_type: HookType) -> str:
    """What an agent is told to run."""
    return shlex.join([*program, "hooks", agent, "handle", hook_type])


def type_of(command: str, agent: str) -> HookType | None:
    """The hook that this command line of ours handles; None: it is somebody else's."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) <= _TAIL or words[-4:-1] != ["hooks", agent, "handle"]:
        return None
    return next((known for known in HOOK_TYPES if known == words[-1]), None)


@dataclass(frozen=True, slots=True)
class AgentHookFile:
    """A file of an agent in which hooks can stand."""

    agent: str
    native: NativeHooks
    file: ConfigFile
    place: AgentPaths
    path: Path

    def installed(self, text: str | None) -> dict[HookType, str]:
        """Our command lines in it, by what they handle. Raises CONFIG_ERROR when the text is not of its format."""
        if text is None:
            return {}
        data = self._data(text)
        found: dict[HookType, str] = {}
        for name in self._names(self.native.types):
            there = value_at(data, self._field(name), None)
            for command in () if there is None else self.native.commands(there):
                kind = type_of(command, self.agent)
                if kind is not None:
                    found[kind] = command
        return found

    def works(self, text: str | None) -> tuple[HookType, ...]:
        """For what the agent calls us indeed: the program is there. Raises CONFIG_ERROR."""
        found = self.installed(text)
        return tuple(kind for kind, command in found.items() if shutil.which(shlex.split(command)[0]) is not None)

    def is_off(self, text: str | None) -> bool:
        """It keeps the agent from calling hooks. Raises CONFIG_ERROR."""
        return text is not None and self.native.off(self._data(text))

    def with_hooks(self, text: str | None, types: Iterable[HookType], program: Sequence[str]) -> str:
        """The text with us called for these types, and for no others that we were called for with another command."""
        changed = empty_text(self.file.format) if text is None else text
        for path, value in (self.native.preamble or {}).items():
            if value_at(self._data(changed), path, None) is None:
                changed = self._edited(changed, path, value)
        for kind in types:
            line = command_line(program, self.agent, kind)
            for name in self.native.types[kind]:
                changed = self._with_hook(changed, name, kind, line)
        return changed

    def without_hooks(self, text: str, types: Iterable[HookType]) -> str:
        """The text without our command lines for these types."""
        wanted = set(types)
        for name in self._names(wanted):
            text = self._without(text, name, lambda command: type_of(command, self.agent) in wanted)
        return text

    def is_empty(self, text: str) -> bool:
        """It says nothing but what we would begin it with."""
        data = self._data(text)
        for path in self.native.preamble or {}:
            data = {name: value for name, value in data.items() if name != path[0]}
        return not any(data.values())

    def _with_hook(self, text: str, name: str, kind: HookType, line: str) -> str:
        there = value_at(self._data(text), self._field(name), None)
        if there is not None and line in self.native.commands(there):
            return text
        text = self._without(text, name, lambda command: type_of(command, self.agent) == kind)
        there = value_at(self._data(text), self._field(name), None)
        wanted = self.native.add(there, name, line)
        if there is not None and type(wanted) is not type(there):
            raise self._wrong(DocumentError(f"{'.'.join(self._field(name))} holds no hooks of {self.agent}"))
        if isinstance(there, list) and wanted[: len(there)] == there:  # what is there keeps its looks
            for at in range(len(there), len(wanted)):
                text = self._edited(text, (*self._field(name), str(at)), wanted[at])
            return text
        return self._edited(text, self._field(name), wanted)

    def _without(self, text: str, name: str, is_ours: Callable[[str], bool]) -> str:
        there = value_at(self._data(text), self._field(name), None)
        if there is None or not any(map(is_ours, self.native.commands(there))):
            return text
        wanted = self.native.remove(there, is_ours)
        if not wanted:
            return self._changed(without_field, text, self._field(name))
        if isinstance(there, list) and all(item in there for item in wanted):
            for at in range(len(there) - 1, -1, -1):
                if there[at] not in wanted:
                    text = self._changed(without_field, text, (*self._field(name), str(at)))
            return text
        return self._edited(text, self._field(name), wanted)

    def _names(self, types: Iterable[HookType]) -> list[str]:
        return list(dict.fromkeys(name for kind in types for name in self.native.types.get(kind, ())))

    def _field(self, name: str) -> FieldPath:
        return (*self.file.table(self.place), *self.native.place(name))

    def _data(self, text: str) -> dict[str, Any]:
        try:
            return open_document(text, self.file.format).data()
        except DocumentError as error:
            raise self._wrong(error) from error

    def _edited(self, text: str, path: FieldPath, value: Any) -> str:
        return self._changed(with_field, text, path, value)

    def _changed(self, change: Callable[..., str], text: str, path: FieldPath, *value: Any) -> str:
        try:
            return change(text, self.file.format, path, *value)
        except DocumentError as error:
            raise self._wrong(error) from error

    def _wrong(self, error: DocumentError) -> AgentMuxError:
        return AgentMuxError("CONFIG_ERROR", f"{self.path} cannot be changed: {error}")
