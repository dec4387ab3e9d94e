"""Set up one loop of a run: the settings of the agent that has the conversation, its tools, gates and context."""

from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from agent_loop.agent_options import LoopArguments
from agent_loop.agent_parts import AgentParts, make_skill_host
from agent_loop.behavior import Behavior, resolve_behavior
from agent_loop.context.manager import ContextManager, request_window
from agent_loop.conversation import AgentConversation
from agent_loop.events import BudgetExceeded, ContinuationKind, LoopEvent, TurnTrigger
from agent_loop.gates import framework_gates
from agent_loop.hooks.contexts import BeforeAgent, ToolBudgetExceeded
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.chain import ActingAgent
from agent_loop.loop.inputs import MessageQueue
from agent_loop.loop.outputs import request_summary
from agent_loop.loop.run import LoopRun, Surroundings
from agent_loop.messages import user
from agent_loop.providers import Provider
from agent_loop.sessions.ids import config_segment
from agent_loop.sessions.session import LoopConfig, SpawnRef
from agent_loop.tools.tool import Tool, mcp_origin_of
from agent_loop.workspace import Workspace

CONTEXT_KEY = "context"
"""Key in `AgentState.extra` of the context manager's saved state."""


class LoopOwner(Protocol):
    """What the setup of a loop needs to know about its agent. `Agent` has it."""

    name: str
    provider: Provider
    fallbacks: tuple[Provider, ...]
    tools: tuple[Tool, ...]
    deps: Any
    system_prompt: str
    behavior: Behavior
    hooks: Hooks
    first_hooks: Hooks
    workspace: Workspace | None
    surroundings: Surroundings
    steering: MessageQueue
    follow_ups: MessageQueue
    conversation: AgentConversation
    parts: AgentParts


def set_up_loop(
    agent: LoopOwner, options: LoopArguments, holder: tuple[str, int], earlier: LoopRun | None = None
) -> LoopRun:
    """Return a new loop, which follows `earlier` in the same run.

    `holder` is the agent that has the conversation, and the number of messages before that.
    """
    acting = _acting_agent(agent, options, holder)
    run = _new_run(agent, options, holder, acting, earlier)
    _add_transfer_tool(agent, acting, run)
    _add_skills(agent, acting, run)
    run.add_scope(_gates(agent, run))
    _add_context(agent, acting, run)
    _add_mcp_servers(agent, run)
    return run


# -- the agent that has the conversation


def first_agent(agent: LoopOwner, behavior: Behavior, system_prompt: str) -> ActingAgent:
    """Return the settings of this agent, which has the conversation until it hands it off."""
    return ActingAgent(
        name=agent.name,
        provider=agent.provider,
        fallbacks=agent.fallbacks,
        system_prompt=system_prompt,
        behavior=behavior,
        hooks=Hooks(),
    )


def _acting_agent(agent: LoopOwner, options: LoopArguments, holder: tuple[str, int]) -> ActingAgent:
    """Return the settings of the agent that has the conversation."""
    name, since = holder
    behavior = resolve_behavior(options.behavior, agent.behavior)
    prompt = agent.system_prompt if options.system_prompt is None else options.system_prompt
    first, roster = first_agent(agent, behavior, prompt), agent.parts.roster
    if roster is None or name in {"", agent.name}:
        return first
    if name in roster:
        return roster.acting(name, first, agent.conversation.history[:since])

    def note(context: BeforeAgent) -> None:
        context.notes.append(f"the conversation was with {name!r}, which is no handoff of this agent any more")

    return replace(first, hooks=Hooks({"agent:before": note}))


def loop_config(agent: LoopOwner, acting: ActingAgent) -> LoopConfig:
    """Return the configuration of a loop with this agent, as sessions record it."""
    model, able, behavior = acting.provider, acting.provider.capabilities, acting.behavior
    config_id = agent.parts.config_id if acting.name == agent.name else acting.name
    return LoopConfig(
        config_id=config_segment(model.id, model.model, behavior.thinking, config_id),
        name=f"{model.id}:{model.model}",
        provider=model.id,
        model=model.model,
        api=getattr(model, "api", ""),
        base_url=getattr(model, "base_url", None),
        reasoning=able.thinking,
        context_window=able.context_window,
        thinking=behavior.thinking,
        max_tokens=behavior.max_tokens,
        temperature=behavior.temperature,
    )


# -- the loop


def _new_run(
    agent: LoopOwner, options: LoopArguments, holder: tuple[str, int], acting: ActingAgent, earlier: LoopRun | None
) -> LoopRun:
    prompted = options.prompted or bool(agent.steering or agent.follow_ups)
    config = loop_config(agent, acting)
    start = agent.conversation.start(options.kind, options.at, prompted=prompted, config=config)
    parts, spawn, bus = agent.parts, options.spawned_by, agent.parts.event_bus
    run_hooks = options.hooks if isinstance(options.hooks, Hooks) else Hooks(options.hooks)
    return LoopRun(
        loop_id=start.loop_id,
        session_id=agent.conversation.session.session_id,
        agent_id=agent.conversation.agent_id,
        provider=acting.provider,
        fallbacks=list(acting.fallbacks),
        deps=agent.deps if options.deps is None else options.deps,
        toolset=parts.toolset(agent.tools),
        system=acting.system_prompt,
        overrides_system=options.system_prompt is not None and acting.system_prompt == options.system_prompt,
        behavior=acting.behavior,
        scopes=(agent.first_hooks, agent.hooks, parts.middleware_hooks, run_hooks, acting.hooks),
        history=agent.conversation.history,
        base=start.base,
        state=agent.conversation.session.state,
        workspace=agent.workspace,
        steering=agent.steering,
        follow_ups=agent.follow_ups,
        surroundings=agent.surroundings,
        sink=ignore_event,
        ask=parts.ask or (None if bus is None else bus.asker(agent.conversation.session.session_id, start.loop_id)),
        save=agent.conversation.save,
        parent_loop_id=start.parent_loop_id or (None if spawn is None else spawn.parent_loop_id),
        kind=options.kind,
        trigger=first_trigger(options.kind, spawn),
        depth=0 if spawn is None else spawn.depth,
        store=agent.conversation.store,
        loop_index=start.index,
        prior_turns=start.prior_turns,
        metadata=options.metadata,
        acting="" if parts.roster is None else acting.name,
        agent_since=holder[1] if acting.name == holder[0] else 0,
        inherited=acting.inherited,
        earlier=earlier,
    )


def first_trigger(kind: ContinuationKind | None, spawned_by: SpawnRef | None = None) -> TurnTrigger:
    """Return the trigger of the first turn of a run with this continuation kind, which `spawned_by` may start."""
    if kind is None:
        return "user" if spawned_by is None else "sub_agent"
    return "branch" if kind == "branch" else "continuation"


async def ignore_event(_event: LoopEvent) -> None:
    """Discard the event: the run has no subscriber."""


# -- its parts, in the order in which they are added


def _add_transfer_tool(agent: LoopOwner, acting: ActingAgent, run: LoopRun) -> None:
    roster = agent.parts.roster
    if roster is not None and roster.targets_of(acting.name):
        from agent_loop.handoffs import TransferTool  # noqa: PLC0415  # most agents have no handoffs

        run.toolset = agent.parts.toolset([*agent.tools, TransferTool(roster, run)])


def _add_skills(agent: LoopOwner, acting: ActingAgent, run: LoopRun) -> None:
    skills = agent.parts.skills
    if acting.skills is not None:
        scopes = (agent.hooks, agent.parts.middleware_hooks)
        skills = make_skill_host(acting.skills or None, scopes, lambda: agent.conversation.session.state)
    if skills is not None:
        from agent_loop.skills.run import SkillRun  # noqa: PLC0415  # most agents have no skills

        run.skills = skills
        SkillRun(skills, run).install()


def _gates(agent: LoopOwner, run: LoopRun) -> Hooks:
    async def report_exceeded(exceeded: ToolBudgetExceeded) -> None:
        await run.hooks.fire("tool-budget:exceeded", exceeded)
        await run.emit(
            BudgetExceeded(
                loop_id=run.loop_id,
                budget="tool_calls",
                limit=exceeded.max_calls,
                used=exceeded.count,
                tool=exceeded.tool,
            )
        )

    return framework_gates(
        run.behavior,
        steer=lambda text: agent.steering.put(user(text, origin="budget")),
        on_exceeded=report_exceeded,
        memory=agent.parts.dedup_memory,
        used=run.tool_counts,
    )


def _add_context(agent: LoopOwner, acting: ActingAgent, run: LoopRun) -> None:
    run.context = ContextManager(
        run.behavior.context,
        strategy=agent.parts.compaction,
        summarize=partial(request_summary, run),
        window=request_window(acting.provider.capabilities.context_window, run.behavior.max_tokens),
    )
    saved = agent.conversation.session.state.extra.get(CONTEXT_KEY)
    if saved is not None:
        run.context.load(saved, run.sendable())


def save_context(agent: LoopOwner, run: LoopRun) -> None:
    """Save the compaction state so that the next run reuses it and summarizes nothing twice."""
    saved = run.context.save(run.sendable())
    if saved is None:
        agent.conversation.session.state.extra.pop(CONTEXT_KEY, None)
    else:
        agent.conversation.session.state.extra[CONTEXT_KEY] = saved


def _add_mcp_servers(agent: LoopOwner, run: LoopRun) -> None:
    if agent.parts.mcp is not None:
        from agent_loop.mcp.run import McpRun  # noqa: PLC0415  # most agents have no servers

        McpRun(agent.parts.mcp, run).install()
    elif any(mcp_origin_of(tool) is not None for tool in run.toolset):  # of the parent of a sub-agent
        from agent_loop.mcp.calls import call_hooks  # noqa: PLC0415  # as above

        run.add_scope(call_hooks(run))
