"""What tools did to the world, as the stored events of a loop say it: commands, and files.

The history has what the model was told; a session that was forked has nothing else.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, rows, text, whole


class Done:
    """The tool calls of one loop."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._commands: dict[str, str] = {}
        self._effects: dict[str, list[Mapping[str, Any]]] = {}
        for event in events:
            match event.get("type"):
                case "tool_call" if text(event.get("shell_command")):
                    self._commands[text(mapping(event.get("call")).get("id"))] = text(event.get("shell_command"))
                case "tool_result":
                    call_id = text(mapping(event.get("message")).get("tool_call_id"))
                    self._effects[call_id] = rows(event.get("effects"))

    def shell(self, call_id: str) -> facts.Shell | None:
        """The command that the call runs."""
        command = self._commands.get(call_id)
        return facts.Shell(command) if command else None

    def end(self, message: Mapping[str, Any], said: str) -> facts.ToolDone:
        """How the call ended that this message is the result of."""
        call_id = text(message.get("tool_call_id"))
        effects = self._effects.get(call_id, [])
        ran = next((one for one in effects if one.get("type") == "command_ran"), {})
        exit_code = optional_whole(mapping(message.get("details")).get("exit_code"))
        has_failed = message.get("is_error") is True or bool(exit_code)
        return facts.ToolDone(
            call_id,
            output=None if has_failed else said,
            error=said if has_failed else None,
            stdout=text(ran.get("stdout")) or None,
            stderr=text(ran.get("stderr")) or None,
            exit_code=exit_code,
            files=tuple(file for one in effects if (file := _file(one)) is not None),
            name=text(message.get("name")) or None,
        )


def _file(effect: Mapping[str, Any]) -> facts.FileEffect | None:
    path = text(effect.get("path"))
    match effect.get("type"):
        case "file_read":
            return facts.FileRead(path)
        case "file_written":
            return facts.FileWritten(path, whole(effect.get("byte_count")), effect.get("created") is True)
        case "file_patched":
            return facts.FilePatched(path, text(effect.get("diff")))
        case "file_deleted":
            return facts.FileDeleted(path)
    return None
