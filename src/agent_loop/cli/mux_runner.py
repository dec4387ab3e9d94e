"""Sub-agents of `amux-agent` that are other agents of agent-mux: each delegation is one run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from agent_loop.cli.errors import UsageError
from agent_loop.errors import ToolError
from agent_loop.events import LoopStatus
from agent_loop.hooks.contexts import ToolGate
from agent_loop.subagents import SubAgentReport, SubAgentTask
from agent_loop.subagents.runner import ask_parent
from agent_loop.suspension import suspendable
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind
from agent_loop.usage import Usage
from agent_loop.workspace import Workspace

if TYPE_CHECKING:
    from agent_mux import PendingInteraction, RunResult
    from agent_mux.run.base import Run
    from agent_mux.sdk.interactions import Response

PREFIX = "delegate_to_"
"""Beginning of the names of tools that delegate to another agent; its name follows."""
MAX_DEPTH = 2
"""Levels of delegation where AGENT_MUX_MAX_DEPTH sets no limit, as of `amux mcp-server`."""
PAUSE_TIMEOUT = 2.0
"""Seconds for another agent to be paused or resumed."""
_STATUSES: Mapping[str, LoopStatus] = {
    "completed": "completed",
    "turn_limit": "limited",
    "budget": "limited",
    "timeout": "limited",
    "inactivity": "limited",
    "aborted": "aborted",
    "interrupted": "aborted",
}


def check_agents(names: Sequence[str]) -> None:
    """Raise `UsageError` for a name that is no agent of agent-mux. Blocking."""
    if not names:
        return
    from agent_mux.errors import AgentMuxError  # noqa: PLC0415  # only delegations need the registry
    from agent_mux.sdk.registry import AdapterRegistry  # noqa: PLC0415

    registry = AdapterRegistry()
    for name in set(names).difference(registry.names()):
        try:
            registry.get(name)  # an alias, or the error
        except AgentMuxError as error:
            raise UsageError(f"--sub-agent: {error}") from None


@dataclass(frozen=True, slots=True)
class MuxRunner:
    """Runs tasks with another agent in the same directory. Its approval requests are decided by the parent's gates."""

    agent: str
    directory: Path
    environ: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the runs."""

    async def __call__(self, task: SubAgentTask) -> SubAgentReport:
        """Run the task to its end. Raises `ToolError` at the depth limit, and `AgentMuxError` if it cannot start."""
        from agent_mux import AgentMux  # noqa: PLC0415  # only delegations need the client

        limits = task.limits
        async with AgentMux() as mux:
            run = mux.run(
                agent=self.agent,
                prompt=task.prompt,
                cwd=str(self.directory),
                env=self._inherited(limits.max_cost_usd),
                approval_mode="prompt",
                on_approval_request=partial(_decide, task, self.directory),
                on_input_required=partial(_answer, task),
                timeout=limits.max_duration,
                max_model_calls=limits.max_turns,
                max_tokens_total=limits.max_total_tokens,
                max_cost_usd=limits.max_cost_usd,
                **self.options,
            )
            with suspendable(_MuxRun(run)):
                result = await run
        task.spend(_usage(result))
        status = _STATUSES.get(result.exit_reason, "failed")
        error = None if status == "completed" else f"it ended with {result.exit_reason}"
        if result.error is not None:
            error = result.error.message
        return SubAgentReport(status=status, text=result.text, error=error, model=result.model or "")

    def _inherited(self, max_cost_usd: float | None) -> dict[str, str]:
        """Return the variables that pass the limits of delegation on. Raises `ToolError` at the depth limit."""
        from agent_mux.mcp_server.inheritance import InheritedLimits, read_inherited_limits  # noqa: PLC0415

        limits = read_inherited_limits(self.environ)
        max_depth = MAX_DEPTH if limits.max_depth is None else limits.max_depth
        if limits.depth >= max_depth:
            raise ToolError(f"the task is already delegated (depth {limits.depth} of {max_depth}): do it yourself")
        return limits.merge(InheritedLimits(limits.depth + 1, max_depth, max_cost_usd)).environment()


@dataclass(frozen=True, slots=True, eq=False)
class _MuxRun:
    """A run that Ctrl-Z pauses and `fg` resumes."""

    run: "Run"

    async def pause(self) -> None:
        await self._reach(self.run.pause)

    def add_time(self, seconds: float) -> None:
        """Do nothing: the time limit of a run includes the time in which it is paused."""

    async def resume(self) -> None:
        await self._reach(self.run.resume)

    async def _reach(self, change: Callable[[], Awaitable[object]]) -> None:
        from agent_mux.errors import AgentMuxError  # noqa: PLC0415  # only delegations need the client

        with anyio.move_on_after(PAUSE_TIMEOUT), suppress(AgentMuxError):  # it has not started yet, or has ended
            await change()


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool of another agent, as the gates of the parent see it."""

    name: str
    kind: ToolKind
    risk: Risk
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:  # noqa: ARG002  # its agent runs it
        """Refuse to run: the other agent does. Raises `ToolError`."""
        raise ToolError(f"{self.name} is a tool of another agent")


async def _decide(task: SubAgentTask, directory: Path, request: "PendingInteraction") -> "Response":
    from agent_mux import ApprovalDetail, Approve, Deny  # noqa: PLC0415

    detail = request.detail
    if not isinstance(detail, ApprovalDetail):
        return Deny("this is no request for an approval")
    run = task.parent
    name = detail.tool_name or detail.action
    kind: ToolKind = "other" if detail.command is None else "execute"
    if kind == "other" and await to_thread.run_sync(_are_inside, run.workspace, directory, detail.paths):
        kind = "edit"
    risk: Risk = (
        "medium" if detail.risk_level == "low" else detail.risk_level
    )  # "other" with a low risk needs no approval
    arguments = dict(detail.tool_input) if isinstance(detail.tool_input, Mapping) else {"detail": detail.detail}
    if detail.command is not None:
        arguments["command"] = detail.command
    gate = ToolGate(
        call_id=detail.tool_call_id or request.id,
        name=name,
        arguments=arguments,
        tool=ForeignTool(name, kind, risk),
        **{**run.hook_fields, "depth": task.spawned_by.depth},
    )
    if not await ask_parent(run, gate) or gate.block or gate.result is not None:
        return Deny(gate.reason or "a policy does not allow this call")
    return Approve()


def _are_inside(workspace: Workspace | None, directory: Path, paths: Sequence[str]) -> bool:
    """Return whether there are paths and the parent's own tools could change all of them."""
    if workspace is None or not paths:
        return False
    return all(workspace.is_writable(directory / path) for path in paths)


async def _answer(task: SubAgentTask, request: "PendingInteraction") -> "Response":
    from agent_mux import Deny, InputDetail, Text  # noqa: PLC0415

    ask, detail = task.parent.ask, request.detail
    if ask is None or not isinstance(detail, InputDetail):
        return Deny("no user is available to answer")
    try:
        return Text(await ask(detail.question, tuple(detail.options)))
    except ToolError as error:
        return Deny(str(error))


def _usage(result: "RunResult") -> Usage:
    cost = result.cost
    if cost is None:
        tokens = result.token_usage
        return Usage() if tokens is None else Usage(tokens.input_tokens, tokens.output_tokens)
    return Usage(
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        cache_read_tokens=cost.cached_tokens or 0,
        thinking_tokens=cost.thinking_tokens,
        cost_usd=cost.total_usd if cost.source != "unknown" else None,
    )
