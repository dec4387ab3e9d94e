"""The built-in gates: allowed tools, call budgets and repeated calls."""

import json
from itertools import count

import anyio
import pytest

from agent_loop.behavior import DEFAULTS, Behavior, ToolBudget
from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.gates import DedupMemory, allowed_tools, dedup, framework_gates, tool_budgets
from agent_loop.hooks import Chain, Hooks
from agent_loop.hooks.contexts import LoopEnded, ToolGate
from agent_loop.messages import Text, ToolCall
from agent_loop.tools.tool import ToolResult
from agent_loop.usage import Usage

pytestmark = pytest.mark.anyio

STEERED = (
    "[Tool budget exceeded: execute was called 2 times in this run (budget: 1). "
    "Stop calling it and continue with what you have.]"
)


def answered(text: str, **known) -> ToolResult:
    return ToolResult((Text(text),), **known)


def hashed(arguments) -> str:
    return json.dumps(arguments, sort_keys=True)


def over() -> LoopEnded:
    return LoopEnded(
        session_id="s", loop_id="loop", status="aborted", usage=Usage(), turns=1, turn_range=(0, 1), messages=[]
    )


class World:
    """The gates, and the messages and contexts that they reported."""

    def __init__(self, *scopes: Hooks, **behavior) -> None:
        self.steered: list[str] = []
        self.exceeded: list[tuple] = []
        self.failures: list[str] = []
        self.memory = DedupMemory()
        self.executed: list[str] = []
        self.numbers = count(1)
        self.given = Behavior(**behavior).over(DEFAULTS)
        self.scopes = scopes
        self.renew()

    def renew(self, **known) -> None:
        """Start the next run of the same session."""
        gates = framework_gates(
            self.given, steer=self.steered.append, on_exceeded=self._exceeded, memory=self.memory, **known
        )
        self.chain = Chain([*self.scopes, gates], self._failed)

    async def _exceeded(self, received) -> None:
        await anyio.lowlevel.checkpoint()
        self.exceeded.append((received.tool, received.count, received.max_calls, received.mode))

    async def _failed(self, hook: str, error: Exception) -> None:
        self.failures.append(f"{hook}: {error}")

    async def gate(
        self, name: str, call_id: str | None = None, loop_id: str = "loop", session_id: str = "s", **arguments
    ):
        context = ToolGate(
            session_id=session_id,
            loop_id=loop_id,
            call_id=call_id or f"call {next(self.numbers)}",
            name=name,
            arguments=arguments,
            turn=3,
        )
        with anyio.fail_after(60):
            await self.chain.fire("tool:gate", context)
        return context

    async def use(self, name: str, call_id: str | None = None, session_id: str = "s", **arguments) -> str:
        """Execute a whole call and return the text for the model."""
        call_id = call_id or f"call {next(self.numbers)}"
        context = await self.gate(name, call_id, session_id=session_id, **arguments)
        if context.block:
            return f"Blocked: {context.reason}"
        if context.result is not None:
            return context.result.text

        async def run(call: ToolCall) -> ToolResult:
            self.executed.append(call.name)
            if "failure" in arguments:
                raise ToolError("no")
            return answered(f"result {len(self.executed)}", is_error="error" in arguments)

        return (await self.chain.around_tool_call(run)(ToolCall(call_id, name, arguments))).text


async def test_tool_budgets_block_refuses_calls_beyond_the_cap() -> None:
    world = World(tool_budgets={"execute": ToolBudget(max_calls=2)})
    results = [await world.use("execute", str(n)) for n in range(4)]
    refusal = "Blocked: execute may be called 2 times in one run, and was; continue without it"
    assert results == ["result 1", "result 2", refusal, refusal]
    assert await world.use("grep") == "result 3"
    assert world.exceeded == [("execute", 3, 2, "block")] * 2


async def test_tool_budgets_steer_enqueues_one_message_per_tool_per_run() -> None:
    world = World(tool_budgets={"execute": ToolBudget(max_calls=1, on_exceed="steer")})
    for number in range(4):
        assert (await world.use("execute", str(number))).startswith("result")
    assert world.steered == [STEERED]
    assert world.exceeded == [("execute", count, 1, "steer") for count in (2, 3, 4)]
    await world.gate("execute", loop_id="next")
    await world.gate("execute", loop_id="next")
    assert len(world.steered) == 2


async def test_tool_budgets_take_a_message_or_a_function() -> None:
    world = World(
        tool_budgets={
            "execute": ToolBudget(max_calls=0, message="enough"),
            "grep": ToolBudget(max_calls=0, on_exceed=lambda tool, count: ("steer", f"{tool} {count}")),
        }
    )
    assert await world.use("execute") == "Blocked: enough"
    assert await world.use("grep") == "result 1"
    assert world.steered == ["grep 0"]


async def test_tool_budgets_stay_atomic_in_a_parallel_batch() -> None:
    world = World(tool_budgets={"execute": ToolBudget(max_calls=3)})
    contexts: list[ToolGate] = []

    async def one(number: int) -> None:
        contexts.append(await world.gate("execute", str(number)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, number)
    assert sum(not each.block for each in contexts) == 3
    assert len(world.exceeded) == 7


async def test_run_tool_counts_include_substitutes_and_exclude_blocked_calls() -> None:
    def policy(context: ToolGate) -> None:
        context.block = "no" in context.arguments
        context.result = answered("cached") if "cached" in context.arguments else None

    world = World(Hooks({"tool:gate": policy}), tool_budgets={"execute": ToolBudget(max_calls=2)})
    await world.use("execute", no=1)
    await world.use("execute", no=1)
    assert await world.use("execute", cached=1) == "cached"
    assert await world.use("execute") == "result 1"
    assert (await world.use("execute")).startswith("Blocked")


async def test_tool_budgets_begin_anew_with_each_run() -> None:
    middleware_told: list = []

    async def received(context) -> None:
        middleware_told.append(context.tool)

    gate = tool_budgets({"x": ToolBudget(max_calls=1)}, steer=middleware_told.append, on_exceeded=received)
    world = World(Hooks(middleware=[gate]))
    await world.gate("x")
    assert (await world.gate("x")).block
    assert not (await world.gate("x", loop_id="other")).block
    await world.chain.fire("agent:done", over())
    assert not (await world.gate("x")).block
    assert (await world.gate("x", loop_id="other")).block


def test_a_budget_below_zero_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="the budget of x is -1 calls"):
        World(tool_budgets={"x": ToolBudget(max_calls=-1)})


async def test_dedup_tools_replays_the_prior_result_for_the_same_hash() -> None:
    world = World(dedup_tools={"grep": hashed})
    results = [await world.use("grep", str(n), pattern=pattern) for n, pattern in enumerate("aabaa")]
    assert results == ["result 1", "result 1", "result 2", "result 3", "result 3"]
    assert await world.use("execute", pattern="a") == "result 4"
    assert await world.use("execute", pattern="a") == "result 5"


async def test_dedup_tools_remembers_per_session_across_runs() -> None:
    world = World(dedup_tools={"grep": hashed})
    assert await world.use("grep") == "result 1"
    world.renew()
    assert await world.use("grep") == "result 1"
    assert await world.use("grep", session_id="another") == "result 2"
    world.memory.forget("s")
    assert await world.use("grep") == "result 3"
    assert await world.use("grep", session_id="another") == "result 2"


async def test_dedup_tools_replays_no_failures() -> None:
    world = World(dedup_tools={"grep": hashed})
    assert await world.use("grep", error=1) == "result 1"
    assert await world.use("grep", error=1) == "result 2"
    with pytest.raises(ToolError):
        await world.use("grep", failure=1)
    assert await world.use("grep") == "result 4"


async def test_dedup_tools_forgets_calls_that_were_never_run() -> None:
    gate = dedup({"grep": hashed})
    world = World(Hooks(middleware=[gate]))
    await world.gate("grep", "never")
    assert list(gate._running) == ["never"]
    await world.chain.fire("agent:done", over())
    assert gate._running == {}


async def test_failing_hasher_is_reported_and_the_tool_runs() -> None:
    world = World(dedup_tools={"grep": lambda arguments: arguments["pattern"]})
    assert await world.use("grep") == "result 1"
    assert world.failures == ["tool:gate: 'pattern'"]


async def test_gate_precedence_a_policy_of_the_consumer_beats_a_repeated_call() -> None:
    refused = False

    def policy(context: ToolGate) -> None:
        context.block = refused

    world = World(Hooks({"tool:gate": policy}), dedup_tools={"grep": hashed})
    assert await world.use("grep") == "result 1"
    refused = True
    assert await world.use("grep") == "Blocked: "


async def test_gate_precedence_budgets_come_before_dedup() -> None:
    world = World(dedup_tools={"grep": hashed}, tool_budgets={"grep": ToolBudget(max_calls=2)})
    assert [await world.use("grep", str(n)) for n in range(2)] == ["result 1", "result 1"]
    assert (await world.use("grep")).startswith("Blocked: grep may be called 2 times")


async def test_gate_precedence_allowed_tools_come_before_budgets() -> None:
    world = World(tool_budgets={"grep": ToolBudget(max_calls=0)})
    world.renew(allowed={"read_file", "edit"})
    assert await world.use("grep") == "Blocked: the tool grep is not allowed here; allowed: edit, read_file"
    assert world.exceeded == []
    assert await world.use("edit") == "result 1"


async def test_empty_allowed_tools_block_all_calls() -> None:
    world = World(Hooks(middleware=[allowed_tools(())]))
    assert await world.use("grep") == "Blocked: the tool grep is not allowed here; allowed: none"
