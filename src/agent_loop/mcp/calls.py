"""The hooks of MCP calls, which fire around the execution of an MCP tool."""

from functools import partial
from typing import Any

from agent_loop.hooks.contexts import McpToolAfter, McpToolBefore, McpToolGate, McpToolTransform
from agent_loop.hooks.registry import Hooks, ToolRun
from agent_loop.loop.run import LoopRun
from agent_loop.loop.tool_calls import GATE_FAILED, blocked, copy_arguments
from agent_loop.mcp.tools import McpTool
from agent_loop.messages import ToolCall
from agent_loop.tools.results import output_bytes, result_or_failure
from agent_loop.tools.tool import ToolResult, label_of


def call_hooks(run: LoopRun) -> Hooks:
    """Return a scope that fires the hooks of the MCP calls of a run."""
    hooks = Hooks()
    hooks.wrap_tool_call(partial(around_call, run))
    return hooks


async def around_call(run: LoopRun, call: ToolCall, proceed: ToolRun) -> ToolResult:
    """Fire the hooks of an MCP tool around its execution."""
    tool = run.toolset.get(call.name)
    if not isinstance(tool, McpTool):
        return await proceed(call)
    started = run.surroundings.monotonic()
    fields: dict[str, Any] = {
        **run.hook_fields,
        "call_id": call.id,
        "name": call.name,
        "label": label_of(tool),
        "wire_name": run.toolset.wire(call.name),
        "run_tool_counts": dict(run.tool_counts),
        "server": tool.mcp_origin.server,
        "tool": tool.mcp_origin.tool,
    }
    gate = McpToolGate(arguments=copy_arguments(call.arguments), **fields)
    if not await run.hooks.fire("mcp:tool:gate", gate) and not gate.block:
        gate.block, gate.reason = True, GATE_FAILED
    if gate.block:
        return blocked(gate)
    if gate.result is not None:
        result = result_or_failure(gate.result)
    else:
        before = McpToolBefore(arguments=copy_arguments(call.arguments), **fields)
        await run.hooks.fire("mcp:tool:before", before)
        result = await proceed(call)
    transform = McpToolTransform(result=result, output_bytes=output_bytes(result.content), **fields)
    await run.hooks.fire("mcp:tool:transform", transform)
    result = result if transform.result is result else result_or_failure(transform.result)
    duration_ms = round((run.surroundings.monotonic() - started) * 1000)
    after = McpToolAfter(result=result, output_bytes=output_bytes(result.content), duration_ms=duration_ms, **fields)
    await run.hooks.fire("mcp:tool:after", after)
    return result
