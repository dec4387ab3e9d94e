"""The tool that delegates a task to a sub-agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from agent_loop.behavior import ExecutionLimits
from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError, ToolError, error_text
from agent_loop.events import SubAgentEnd, SubAgentStart
from agent_loop.hooks.contexts import SpawnBefore, SpawnEnded
from agent_loop.loop.limits import tightest
from agent_loop.loop.run import LoopRun
from agent_loop.messages import Text
from agent_loop.sessions.ids import SUB_AGENT_SUFFIX
from agent_loop.sessions.session import SpawnRef
from agent_loop.subagents.runner import LoopRunner
from agent_loop.subagents.task import SubAgentReport, SubAgentRunner, SubAgentTask
from agent_loop.tools.tool import ToolContext, ToolResult
from agent_loop.usage import Usage

GRACE = 10.0
"""Seconds that a runner has to end after the time limit of its task."""
MAX_PROMPT = 200_000
"""Characters of a task."""
MAX_DESCRIPTION = 1024
"""Characters of the description of a kind of sub-agent in the tool's parameters."""
DESCRIPTION = (
    "Delegate a task to a sub-agent with the same tools and an empty history, and get its report. Use it for work "
    "whose details you do not need, such as a search through many files. The sub-agent knows only the task: state "
    "the goal, what you know already, and what the report must contain."
)


@dataclass(frozen=True, slots=True)
class SubAgentKind(Checked):
    """A kind of sub-agent that a task can name."""

    description: str
    """When to use it, for the model."""
    runner: SubAgentRunner


class SubAgentTool:
    """A tool whose calls run a sub-agent: a loop of its own, or anything else behind a runner.

    Without `read_only`, its calls run one after the other, because sub-agents share the files of their parent.
    """

    kind = "other"
    risk = "low"  # the gates of the parent decide about each call of the sub-agent

    def __init__(  # noqa: PLR0913  # keyword arguments, each documented below
        self,
        name: str = "delegate",
        *,
        description: str = DESCRIPTION,
        runner: SubAgentRunner | None = None,
        limits: ExecutionLimits | None = None,
        max_depth: int = 1,
        read_only: bool = False,
        kinds: Mapping[str, SubAgentKind] | None = None,
    ) -> None:
        """Create the tool.

        Args:
            name: The name of the tool and the kind of sub-agent.
            description: When and how to use it, for the model.
            runner: Executes the tasks; None: `LoopRunner()`, which inherits everything from the parent.
            limits: Limits of one sub-agent; None: `ExecutionLimits()`. What is left of the parent's tokens, time and
                cost is a limit as well.
            max_depth: Levels of delegation: with 1, sub-agents cannot delegate.
            read_only: Whether the sub-agents change nothing, so that they may run concurrently.
            kinds: Kinds of sub-agents by name, which a task can choose instead of `runner`.
        """
        if max_depth < 1:
            raise ConfigurationError("max_depth must be at least 1")
        self.name = name
        self.description = description
        self.label = name
        self.runner = runner or LoopRunner()
        self.limits = limits or ExecutionLimits()
        self.max_depth = max_depth
        self.read_only = read_only
        self.kinds = dict(kinds or {})
        self.parameters: Mapping[str, Any] = _parameters(self.kinds)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run a sub-agent and return its report. Raises `ToolError` if it cannot start."""
        spent: list[Usage] = []
        kind = self.kinds.get(arguments.get("agent", ""))
        name = self.name if kind is None else str(arguments["agent"])
        task = await self._task(str(arguments["task"]), name, context, spent.append)
        run = task.parent
        await run.emit(
            SubAgentStart(
                loop_id=run.loop_id,
                call_id=context.call_id,
                subagent_id=task.subagent_id,
                name=task.name,
                prompt=task.prompt,
                depth=task.spawned_by.depth,
            )
        )
        report = SubAgentReport(status="aborted", error="the run of its parent ended")
        try:
            report = await self._run(task, self.runner if kind is None else kind.runner)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(task, report, spent)
        text = report.text
        if report.error is not None:
            text = f"{text}\n\n[The sub-agent has no complete report: {report.error}]".strip()
        return ToolResult(
            (Text(text or "[The sub-agent returned an empty report.]"),),
            is_error=report.is_error,
            child_loop_id=report.child_loop_id,
            child_session_id=report.child_session_id,
        )

    async def _task(self, prompt: str, name: str, context: ToolContext, spend: Callable[[Usage], None]) -> SubAgentTask:
        run = context.parent
        if not isinstance(run, LoopRun):
            raise ToolError("a sub-agent can only be started by the run of an agent")
        if run.depth >= self.max_depth:
            raise ToolError(f"sub-agents of depth {self.max_depth} cannot delegate further; do the task yourself")
        before = SpawnBefore(
            call_id=context.call_id,
            subagent_id=f"{run.surroundings.new_id()}{SUB_AGENT_SUFFIX}",
            name=name,
            prompt=prompt,
            **run.hook_fields,
        )
        succeeded = await run.hooks.fire("spawn:before", before)
        if before.block or not succeeded:
            raise ToolError(f"the sub-agent was not started: {before.reason or 'a hook refused it'}")
        return SubAgentTask(
            subagent_id=before.subagent_id,
            name=name,
            prompt=before.prompt,
            spawned_by=SpawnRef(
                parent_session_id=run.session_id,
                parent_loop_id=run.loop_id,
                tool_call_id=context.call_id,
                tool_name=context.tool_name,
                depth=run.depth + 1,
            ),
            limits=tightest(self.limits, run.tracker.rest()),
            parent=run,
            progress=context.progress,
            spend=spend,
        )

    async def _run(self, task: SubAgentTask, runner: SubAgentRunner) -> SubAgentReport:
        seconds = task.limits.max_duration
        report: SubAgentReport | None = None
        try:
            with anyio.move_on_after(None if seconds is None else seconds + GRACE):
                report = await runner(task)
        except Exception as error:  # noqa: BLE001  # foreign code; the model gets the error
            return SubAgentReport(status="failed", error=error_text(error) or type(error).__name__)
        return report or SubAgentReport(status="limited", error="it stopped at its limit (duration)")


def _parameters(kinds: Mapping[str, SubAgentKind]) -> Mapping[str, Any]:
    """Return the schema of the arguments: the task and, if there are any, the kind of sub-agent."""
    properties: dict[str, Any] = {
        "task": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PROMPT,
            "description": "The task with everything that the sub-agent needs to know.",
        }
    }
    if kinds:
        lines = (f"- {name}: {' '.join(kind.description.split())[:MAX_DESCRIPTION]}" for name, kind in kinds.items())
        properties["agent"] = {
            "type": "string",
            "enum": [*kinds],
            "description": "\n".join(("The sub-agent that does the task; omit it for one like you.", *lines)),
        }
    return {"type": "object", "properties": properties, "required": ["task"], "additionalProperties": False}


async def _end(task: SubAgentTask, report: SubAgentReport, spent: Sequence[Usage]) -> None:
    """Count the usage for the parent, and report the end by event and hook."""
    run, spawned_by = task.parent, task.spawned_by
    usage = sum(spent, start=Usage())
    run.tracker.add_usage(usage)
    shared: dict[str, Any] = {
        "call_id": spawned_by.tool_call_id,
        "subagent_id": task.subagent_id,
        "name": task.name,
        "status": report.status,
        "text": report.text,
        "error": report.error if report.error or not report.is_error else "it returned no text",
        "child_loop_id": report.child_loop_id,
        "child_session_id": report.child_session_id,
        "usage": usage,
    }
    await run.emit(SubAgentEnd(loop_id=run.loop_id, model=report.model, **shared))
    hook = "spawn:error" if report.is_error else "spawn:complete"
    await run.hooks.fire(hook, SpawnEnded(**shared, **run.hook_fields))
