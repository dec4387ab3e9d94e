"""Hook calls that the events of a run cause."""

from typing import Any

import pytest

from agent_mux.events import ToolCallReadyEvent, ToolErrorEvent, ToolResultEvent
from agent_mux.run.hook_triggers import HookTriggerMapper

COMMON: dict[str, Any] = {"run_id": "r", "agent": "x", "timestamp": 0, "tool_call_id": "c", "tool_name": "Bash"}


@pytest.mark.parametrize(
    "ended", [ToolResultEvent(**COMMON, output="made", duration_ms=1), ToolErrorEvent(**COMMON, error="no space left")]
)
def test_hook_after_a_tool_receives_the_input_command_and_paths_of_the_call(ended: Any) -> None:
    mapper = HookTriggerMapper("x", "/", "prompt")
    given = {"command": "touch a", "path": "a"}
    (before,) = mapper.triggers(ToolCallReadyEvent(**COMMON, input=given))
    (after,) = mapper.triggers(ended)
    for call in (before.call, after.call):
        assert (call.tool_input, call.command, call.paths) == (given, "touch a", ("a",))
    assert after.call.tool_output in ("made", "no space left")
