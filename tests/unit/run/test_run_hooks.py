"""The hooks of a run that is cancelled."""

import anyio
import pytest

from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.events import ToolCallReadyEvent
from agent_mux.loopback.hooks import FunctionHooks
from agent_mux.run.hooks import RunHooks
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, HOOK_TYPES

pytestmark = pytest.mark.anyio


async def test_tool_calls_that_a_cancelled_run_still_reports_are_no_error() -> None:
    functions = FunctionHooks({"pre_tool_use": lambda _: None}, GUARDED_HOOK_TYPES, is_native=False)
    hooks = RunHooks([], dispatch_call, frozenset(HOOK_TYPES), "x", "/", "prompt", functions)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await tasks.start(hooks.run_calls)
            tasks.cancel_scope.cancel()
        hooks.observe([ToolCallReadyEvent(
            run_id="r", agent="x", timestamp=0, tool_call_id="c", tool_name="Bash", input={"command": "ls"},
        )])  # fmt: skip
