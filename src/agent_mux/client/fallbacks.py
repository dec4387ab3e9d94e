"""Plans the fallbacks of a run: the agents or models that answer its prompt when the provider refuses.

See docs/spec/run-api.md, section 2.8.
"""

from collections.abc import Callable
from dataclasses import replace

from agent_mux.run.plan import RunPlan
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry


def with_fallbacks(plan: RunPlan, adapters: AdapterRegistry, plan_one: Callable[[RunOptions], RunPlan]) -> RunPlan:
    """Plan each fallback before the run starts, so that one that cannot run is an error now.

    A fallback has the options of the run, its id, its directory and its worktree. One that is the run itself is
    skipped, because a list of agents may apply to each of them. Another agent cannot continue a stored session, so it
    is skipped with a warning of the run.

    Args:
        plan: The plan of the run.
        adapters: Resolves names and aliases of agents.
        plan_one: Returns the plan for options, with hooks.

    Raises:
        AgentMuxError: A fallback cannot run; the errors of a run with its agent.
    """
    options, agent = plan.requested_options, plan.adapter.agent
    resumes = options.session_id is not None or options.fork_session_id is not None
    fallbacks, notes = list[RunPlan](), list[str]()
    for name in options.fallback:
        wanted, _, model = name.partition(":")
        other = adapters.get(wanted).agent
        if other == agent and model in {"", options.model}:
            continue
        if other != agent and resumes:
            notes.append(f"fallback {name} is not used: {other} cannot continue a session of {agent}")
            continue
        following = replace(options, model=model or None, run_id=plan.run_id, fallback=())
        if other != agent:
            following = replace(following, agent=other, command=())
        fallbacks.append(plan_one(following))
    spawn = replace(plan.spawn, notes=(*plan.spawn.notes, *notes))
    return replace(plan, spawn=spawn, fallbacks=tuple(fallbacks))
