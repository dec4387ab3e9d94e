"""What hooks are told of the events of a run. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
"""Under which tools of most agents have what rules look at. Where the agent asks, it says so itself."""


@dataclass(frozen=True, slots=True)
class HookTrigger:
    """Something that hooks are called for."""

    call: HookCall
    is_error: bool = False
    """The tool did not do what it should."""


class HookTriggerMapper:
    """Follows the events of one run."""

    def __init__(self, agent: str, cwd: str, prompt: str) -> None:
        self.session_id: str | None = None
        self._agent, self._cwd, self._prompt = agent, cwd, prompt
        self._inputs: dict[str, Mapping[str, Any] | None] = {}
        self._answer: str | None = None

    def observe(self, event: AgentEvent) -> list[HookTrigger]:
        """What this event means for hooks."""
        look = _LOOKS.get(type(event))
        return [] if look is None else look(self, event)

    def prompt(self, text: str) -> HookTrigger:
        """A prompt that the agent was sent."""
        return self._call("prompt_submit", prompt=text)

    def _call(self, hook_type: HookType, *, is_error: bool = False, **fields: Any) -> HookTrigger:
        call = HookCall(agent=self._agent, hook_type=hook_type, session_id=self.session_id, cwd=self._cwd, **fields)
        return HookTrigger(call, is_error)

    def _session_start(self, event: SessionStartEvent) -> list[HookTrigger]:
        self.session_id = event.session_id
        return [self._call("session_start", message="resume" if event.resumed else "startup")]

    def _turn_start(self, event: TurnStartEvent) -> list[HookTrigger]:
        self._answer = None
        return [self.prompt(self._prompt)] if event.turn_index == 0 and self._prompt else []

    def _message_stop(self, event: MessageStopEvent) -> list[HookTrigger]:
        self._answer = event.text
        return []

    def _ready(self, event: ToolCallReadyEvent | McpToolCallStartEvent) -> list[HookTrigger]:
        given = event.input if isinstance(event.input, dict) else None
        self._inputs[event.tool_call_id] = given
        name, number = event.tool_name, event.tool_call_id
        said = given or {}
        return [
            self._call(
                "pre_tool_use", tool_call_id=number, tool_name=name, tool_input=given, command=_command(said),
                paths=tuple(said[one] for one in _PATHS if isinstance(said.get(one), str)),
            )
        ]  # fmt: skip

    def _ended(self, event: Any) -> list[HookTrigger]:
        is_error = isinstance(event, ToolErrorEvent | McpToolErrorEvent)
        return [
            self._call(
                "post_tool_use", is_error=is_error, tool_call_id=event.tool_call_id, tool_name=event.tool_name,
                tool_input=self._inputs.pop(event.tool_call_id, None),
                tool_output=event.error if is_error else event.output,
            )
        ]  # fmt: skip

    def _question(self, event: InputRequiredEvent) -> list[HookTrigger]:
        return [self._call("notification", message=event.question)]

    def _subagent(self, event: SubagentSpawnEvent) -> list[HookTrigger]:
        return [self._call("subagent_start", message=event.agent_name, prompt=event.prompt)]

    def _subagent_over(self, event: SubagentResultEvent | SubagentErrorEvent) -> list[HookTrigger]:
        told = event.summary if isinstance(event, SubagentResultEvent) else event.error
        return [self._call("subagent_stop", message=told)]

    def _turn_end(self, _: TurnEndEvent) -> list[HookTrigger]:
        return [self._call("stop", message=self._answer)]

    def _session_end(self, _: SessionEndEvent) -> list[HookTrigger]:
        return [self._call("session_end")]


def _command(given: Mapping[str, Any]) -> str | None:
    found = next((given[name] for name in _COMMANDS if name in given), None)
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return " ".join(found)
    return found if isinstance(found, str) else None


_LOOKS: Mapping[type, Callable[[HookTriggerMapper, Any], list[HookTrigger]]] = {
    SessionStartEvent: HookTriggerMapper._session_start,  # noqa: SLF001  # a table of this class's own
    TurnStartEvent: HookTriggerMapper._turn_start,  # noqa: SLF001
    MessageStopEvent: HookTriggerMapper._message_stop,  # noqa: SLF001
    ToolCallReadyEvent: HookTriggerMapper._ready,  # noqa: SLF001
    McpToolCallStartEvent: HookTriggerMapper._ready,  # noqa: SLF001
    **dict.fromkeys((ToolResultEvent, ToolErrorEvent, McpToolResultEvent, McpToolErrorEvent), HookTriggerMapper._ended),  # noqa: SLF001
    InputRequiredEvent: HookTriggerMapper._question,  # noqa: SLF001
    SubagentSpawnEvent: HookTriggerMapper._subagent,  # noqa: SLF001
    SubagentResultEvent: HookTriggerMapper._subagent_over,  # noqa: SLF001
    SubagentErrorEvent: HookTriggerMapper._subagent_over,  # noqa: SLF001
    TurnEndEvent: HookTriggerMapper._turn_end,  # noqa: SLF001
    SessionEndEvent: HookTriggerMapper._session_end,  # noqa: SLF001
}
