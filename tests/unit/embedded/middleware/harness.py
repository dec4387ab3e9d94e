"""A run without a loop: fires hooks and makes calls in the engine's order."""

from typing import Any

import anyio
from tests.unit.embedded.providers.harness import PATIENCE

from agent_loop.hooks import Chain, Hooks, Middleware
from agent_loop.hooks.contexts import BeforeAgent, HookContext, LoopEnded, ToolAfter, TransformSystem
from agent_loop.messages import Text, ToolCall
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.state import AgentState
from agent_loop.tools.tool import Tool, ToolContext, ToolResult
from agent_loop.usage import Usage


class Around:
    """One run of an agent with this middleware."""

    def __init__(self, *middleware: Middleware, tools: tuple[Tool, ...] = (), loop_id: str = "loop") -> None:
        self.chain = Chain([Hooks(middleware=middleware)], _failed)
        self.state = AgentState()
        self.tools = list(tools)
        self.loop_id = loop_id

    async def begin(self) -> list[str]:
        """Start a run and return its notes."""
        context = BeforeAgent(tools=self.tools, state=self.state, loop_id=self.loop_id)
        await self.fire("agent:before", context)
        self.tools = context.tools
        return context.notes

    async def fire(self, name: str, context: HookContext) -> None:
        with anyio.fail_after(PATIENCE):
            await self.chain.fire(name, context)

    async def system(self, system: str = "Be good.") -> str:
        context = TransformSystem(system=system)
        await self.fire("system:transform", context)
        return context.system

    async def call_model(self, request: ModelRequest, answer: Any) -> ModelResponse:
        with anyio.fail_after(PATIENCE):
            return await self.chain.around_model_call(answer)(request)

    async def call_tool(self, call: ToolCall, result: ToolResult | Exception) -> ToolResult:
        async def run(_call: ToolCall) -> ToolResult:
            if isinstance(result, Exception):
                raise result
            return result

        with anyio.fail_after(PATIENCE):
            given = await self.chain.around_tool_call(run)(call)
        after = ToolAfter(call_id=call.id, name=call.name, loop_id=self.loop_id, result=given, output_bytes=0)
        await self.fire("tool:after", after)
        return given

    async def end(self) -> None:
        over = LoopEnded(
            status="completed",
            usage=Usage(input_tokens=5),
            turns=2,
            turn_range=(0, 2),
            messages=[],
            loop_id=self.loop_id,
        )
        await self.fire("loop:after", over)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.tools if tool.name == name)


async def _failed(_name: str, error: Exception) -> None:
    raise error


def text_result(text: str, **known: Any) -> ToolResult:
    return ToolResult((Text(text),), **known)


class Probe:
    """A tool that records its arguments and context."""

    description = "A tool for tests."
    label = "Probe"
    risk = "low"

    def __init__(self, name: str = "probe") -> None:
        self.name = name
        self.parameters = {"type": "object"}
        self.contexts: list[ToolContext] = []

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> str:
        self.contexts.append(context)
        return "ok"
