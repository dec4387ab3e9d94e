"""Mapping the events of a run to hook calls, without I/O."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.events import (
    AgentEvent,
    InputRequiredEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    MessageStopEvent,
    SessionEndEvent,
    SessionStartEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolErrorEvent,
    ToolResultEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.sdk.hooks import HookCall, HookType

_COMMANDS = ("command", "cmd")
_PATHS = ("file_path", "path", "notebook_path", "absolute_path", "filePath")
"""Fields in which the tools of most agents have paths. An agent that asks for approval reports the paths itself."""


class HookTrigger(msgspec.Struct, frozen=True):
    """A call of hooks that an event causes."""

    call: HookCall
    is_error: bool = False
    """Whether the tool failed."""


class HookTriggerMapper:
    """Maps the events of one run, in order, to hook calls."""

    def __init__(self, agent: str, cwd: str, prompt: str) -> None:
        self.session_id: str | None = None
        self._agent, self._cwd, self._prompt = agent, cwd, prompt
        self._inputs: dict[str, Mapping[str, Any] | None] = {}
        self._last_message: str | None = None

    def triggers(self, event: AgentEvent) -> list[HookTrigger]:
        """Return the hook calls that this event causes."""
        handler = _HANDLERS.get(type(event))
        return [] if handler is None else handler(self, event)

    def prompt_trigger(self, text: str) -> HookTrigger:
        """Return the hook call for a prompt that was sent to the agent."""
        return self._trigger("prompt_submit", prompt=text)

    def _trigger(self, hook_type: HookType, *, is_error: bool = False, **fields: Any) -> HookTrigger:
        call = HookCall(agent=self._agent, hook_type=hook_type, session_id=self.session_id, cwd=self._cwd, **fields)
        return HookTrigger(call, is_error)

    def _session_start(self, event: SessionStartEvent) -> list[HookTrigger]:
        self.session_id = event.session_id
        return [self._trigger("session_start", message="resume" if event.resumed else "startup")]

    def _turn_start(self, event: TurnStartEvent) -> list[HookTrigger]:
        self._last_message = None
        return [self.prompt_trigger(self._prompt)] if event.turn_index == 0 and self._prompt else []

    def _message_stop(self, event: MessageStopEvent) -> list[HookTrigger]:
        if not event.abandoned:
            self._last_message = event.text
        return []

    def _tool_ready(self, event: ToolCallReadyEvent | McpToolCallStartEvent) -> list[HookTrigger]:
        given = event.input if isinstance(event.input, dict) else None
        self._inputs[event.tool_call_id] = given
        return [
            self._trigger(
                "pre_tool_use", tool_call_id=event.tool_call_id, tool_name=event.tool_name, **_tool_fields(given)
            )
        ]

    def _tool_ended(self, event: Any) -> list[HookTrigger]:
        is_error = isinstance(event, ToolErrorEvent | McpToolErrorEvent)
        return [
            self._trigger(
                "post_tool_use", is_error=is_error, tool_call_id=event.tool_call_id, tool_name=event.tool_name,
                tool_output=event.error if is_error else event.output,
                **_tool_fields(self._inputs.pop(event.tool_call_id, None)),
            )
        ]  # fmt: skip

    def _question(self, event: InputRequiredEvent) -> list[HookTrigger]:
        return [self._trigger("notification", message=event.question)]

    def _subagent(self, event: SubagentSpawnEvent) -> list[HookTrigger]:
        return [self._trigger("subagent_start", message=event.agent_name, prompt=event.prompt)]

    def _subagent_ended(self, event: SubagentResultEvent | SubagentErrorEvent) -> list[HookTrigger]:
        message = event.summary if isinstance(event, SubagentResultEvent) else event.error
        return [self._trigger("subagent_stop", message=message)]

    def _turn_end(self, _: TurnEndEvent) -> list[HookTrigger]:
        return [self._trigger("stop", message=self._last_message)]

    def _session_end(self, _: SessionEndEvent) -> list[HookTrigger]:
        return [self._trigger("session_end")]


def _tool_fields(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the input of a tool, with its command and files, as fields of a hook call."""
    fields = given or {}
    paths = tuple(fields[key] for key in _PATHS if isinstance(fields.get(key), str))
    return {"tool_input": given, "command": _command(fields), "paths": paths}


def _command(given: Mapping[str, Any]) -> str | None:
    found = next((given[name] for name in _COMMANDS if name in given), None)
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return " ".join(found)
    return found if isinstance(found, str) else None


_HANDLERS: Mapping[type, Callable[[HookTriggerMapper, Any], list[HookTrigger]]] = {
    SessionStartEvent: HookTriggerMapper._session_start,  # noqa: SLF001  # the table belongs to this class
    TurnStartEvent: HookTriggerMapper._turn_start,  # noqa: SLF001
    MessageStopEvent: HookTriggerMapper._message_stop,  # noqa: SLF001
    ToolCallReadyEvent: HookTriggerMapper._tool_ready,  # noqa: SLF001
    McpToolCallStartEvent: HookTriggerMapper._tool_ready,  # noqa: SLF001
    ToolResultEvent: HookTriggerMapper._tool_ended,  # noqa: SLF001
    ToolErrorEvent: HookTriggerMapper._tool_ended,  # noqa: SLF001
    McpToolResultEvent: HookTriggerMapper._tool_ended,  # noqa: SLF001
    McpToolErrorEvent: HookTriggerMapper._tool_ended,  # noqa: SLF001
    InputRequiredEvent: HookTriggerMapper._question,  # noqa: SLF001
    SubagentSpawnEvent: HookTriggerMapper._subagent,  # noqa: SLF001
    SubagentResultEvent: HookTriggerMapper._subagent_ended,  # noqa: SLF001
    SubagentErrorEvent: HookTriggerMapper._subagent_ended,  # noqa: SLF001
    TurnEndEvent: HookTriggerMapper._turn_end,  # noqa: SLF001
    SessionEndEvent: HookTriggerMapper._session_end,  # noqa: SLF001
}
