"""Execution of a sub-agent as a loop of its own, with an isolated history and the settings of its parent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_loop.agent import Agent
from agent_loop.behavior import Behavior
from agent_loop.errors import ConfigurationError, ToolError, error_text
from agent_loop.events import LoopEvent, SubAgentEnd, SubAgentEvent, UsageReported
from agent_loop.hooks.contexts import HookContext, McpToolGate, ToolGate
from agent_loop.hooks.registry import Handler, Hooks, Middleware
from agent_loop.loop.run import SKILL_TOOLS, TRANSFER_TOOL, LoopRun
from agent_loop.messages import AssistantMessage
from agent_loop.providers import Provider
from agent_loop.results import RunResult
from agent_loop.sessions.session import Session
from agent_loop.skills.settings import SkillDirectories, SkillSettings
from agent_loop.subagents.task import SubAgentReport, SubAgentTask
from agent_loop.tools.tool import Tool
from agent_loop.tools.toolset import ToolLike

if TYPE_CHECKING:
    from agent_loop.handoffs import HandoffLike

CONFIG_ID = "sub"
"""Configuration segment in the loop ids of sub-agents."""
BUBBLED = ("stream:text", "stream:thinking", "stream:end", "tool:before", "tool:after", "tool:error", "turn:after")
"""Hooks of a sub-agent that the parent's hooks receive as `child:...`, besides the gate."""
MCP_HOOKS = ("mcp:tool:before", "mcp:tool:transform", "mcp:tool:after")
"""Hooks of an inherited MCP tool that the parent's hooks receive, besides the gate."""
GATE_FAILED = "a gate of the parent failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRunner:
    """Runs a sub-agent as a loop. What is not set is inherited from the parent's run."""

    provider: Provider | str | None = None
    fallbacks: Sequence[Provider | str] = ()
    """Models that replace `provider` once its calls fail; without `provider`, those of the parent are inherited."""
    system_prompt: str | None = None
    tools: Sequence[str | ToolLike] | None = None
    """Names of tools of the parent, and further tools; None: all tools of the parent."""
    behavior: Behavior | None = None
    """Options that override those of the parent's run. Its output schema is not inherited."""
    middleware: Callable[[], Sequence[Middleware]] = tuple
    """Returns the middleware of one sub-agent; that of the parent is not inherited."""
    skills: SkillSettings | SkillDirectories | None = None
    """Skills of the sub-agent. None: those of the parent, none of them active, if it has all tools or a tool of skills;
    empty: no skills.
    """
    handoffs: "Sequence[HandoffLike]" = ()
    """Agents to which the sub-agent can hand off its task. Those of the parent are not inherited."""

    async def __call__(self, task: SubAgentTask) -> SubAgentReport:
        """Run the task to its end. Raises `SessionError` if its session cannot be stored."""
        run = task.parent
        agent = Agent(
            run.provider if self.provider is None else self.provider,
            fallbacks=run.fallbacks if self.provider is None else self.fallbacks,
            tools=self._tools(task),
            system_prompt=run.system if self.system_prompt is None else self.system_prompt,
            behavior=self._behavior(task),
            middleware=self.middleware(),
            workspace=run.workspace,
            store=run.store,
            session=_new_session(task),
            ask=run.ask,
            deps=run.deps,
            config_id=CONFIG_ID,
            aliases=run.toolset.aliases,
            skills=self.skills or None,
            handoffs=self.handoffs,
            name=task.name,
            surroundings=run.surroundings,
        )
        agent.first_hooks = parent_hooks(run)
        if run.skills is not None and self._inherits_skills():
            agent.inherit_skills(run.skills)

        async def forward(event: LoopEvent) -> None:
            if isinstance(event, UsageReported | SubAgentEnd):
                task.spend(event.usage)
            await run.emit(SubAgentEvent(loop_id=run.loop_id, subagent_id=task.subagent_id, event=event))

        result = await agent.attempt(task.prompt, on_event=forward, spawned_by=task.spawned_by)
        return _report(result, agent.provider.model)

    def _behavior(self, task: SubAgentTask) -> Behavior:
        inherited = replace(task.parent.behavior, output_schema=None, tool_choice="auto")
        return replace((self.behavior or Behavior()).over(inherited), limits=task.limits)

    def _inherits_skills(self) -> bool:
        if self.skills is not None:
            return False
        return self.tools is None or any(each in SKILL_TOOLS for each in self.tools if isinstance(each, str))

    def _tools(self, task: SubAgentTask) -> list[ToolLike]:
        """Return the tools without those that could only refuse to delegate further.

        Inherited MCP tools are those that the parent's model has: a sub-agent has no catalog to search.
        """
        from agent_loop.mcp.disclosure import ToolSearch  # noqa: PLC0415  # only delegations need it

        # Each agent has its own tools for its skills and its handoffs.
        own = {TRANSFER_TOOL, *(SKILL_TOOLS if task.parent.skills is not None else ())}
        toolset = task.parent.toolset
        offered = (tool for tool in toolset if toolset.is_offered(tool.name))
        found: list[ToolLike] = [tool for tool in offered if not isinstance(tool, ToolSearch) and tool.name not in own]
        if self.tools is not None:
            wanted = [each for each in self.tools if not (isinstance(each, str) and each in own)]
            found = [_tool_named(task, each) if isinstance(each, str) else each for each in wanted]
        return [each for each in found if getattr(each, "max_depth", task.spawned_by.depth + 1) > task.spawned_by.depth]


def parent_hooks(run: LoopRun) -> Hooks:
    """Return hooks for a sub-agent: the gates of its parent decide about its calls, and its hooks bubble up."""
    hooks = Hooks()

    async def gate(context: ToolGate) -> None:
        if not await ask_parent(run, context) and not context.block:
            raise ToolError(GATE_FAILED)  # blocks the call: the decision is unknown

    async def mcp_gate(context: McpToolGate) -> None:
        if not await run.hooks.fire("mcp:tool:gate", context) and not context.block:
            raise ToolError(GATE_FAILED)

    hooks.on("tool:gate", gate)
    hooks.on("mcp:tool:gate", mcp_gate)
    for name in MCP_HOOKS:
        hooks.on(name, _forwarding(run, name))
    for name in BUBBLED:
        if run.hooks.has_handlers(f"child:{name}"):
            for own in (name, f"child:{name}"):
                hooks.on(own, _forwarding(run, f"child:{name}"))
    return hooks


async def ask_parent(run: LoopRun, context: ToolGate) -> bool:
    """Have the gates of the parent decide about a call of its sub-agent. Return False if one raised."""
    succeeded = await run.hooks.fire("child:tool:gate", context)
    return await run.gates.fire("tool:gate", context) and succeeded


def _forwarding(run: LoopRun, name: str) -> Handler:
    async def forward(context: HookContext) -> None:
        await run.hooks.fire(name, context)

    return forward


def _tool_named(task: SubAgentTask, name: str) -> Tool:
    tool = task.parent.toolset.get(name)
    if tool is None:
        raise ConfigurationError(f"the sub-agent {task.name!r} inherits the tool {name!r}, which its parent lacks")
    return tool


def _new_session(task: SubAgentTask) -> Session:
    surroundings = task.parent.surroundings
    now = surroundings.now_ms()
    workspace = task.parent.workspace
    return Session(
        session_id=task.subagent_id,
        agent_id=surroundings.new_id(),
        created_at=now,
        last_active_at=now,
        formation="explicit",
        parent_spawn_ref=task.spawned_by,
        cwd=None if workspace is None else str(workspace.root),
    )


def _report(result: RunResult, model: str) -> SubAgentReport:
    error = None if result.error is None else error_text(result.error) or type(result.error).__name__
    if result.limit is not None:
        error = f"it stopped at its limit ({result.limit})"
    return SubAgentReport(
        status=result.status,
        text=result.text or _last_text(result),
        error=error or result.rejection,
        child_loop_id=result.loop_id,
        child_session_id=result.session_id,
        model=model,
    )


def _last_text(result: RunResult) -> str:
    """Return the last text of a sub-agent that ended without a final answer."""
    answers = (message.text for message in reversed(result.messages) if isinstance(message, AssistantMessage))
    return next((text for text in answers if text.strip()), "")
