"""Selects the hooks of a run that agent-mux itself calls, from the run's events.

Hooks that the agent calls natively are left out, so that no hook is called twice.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.agents.hooks.hooks_json import HookFiles
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.models.matching import model_notes
from agent_mux.run.hooks import RunHooks
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.hooks import ANY_AGENT, HOOK_TYPES, HookType

_ALL_TYPES: frozenset[HookType] = frozenset(HOOK_TYPES)


def select_hooks(plan: RunPlan, config_dir: Path, project_dir: Path | None = None) -> RunHooks | None:
    """Return the hooks that agent-mux calls in this run, None when no hook is registered.

    Args:
        plan: The run.
        config_dir: The global directory of agent-mux.
        project_dir: The project's directory of agent-mux; None: search upwards from the run's working directory.

    Raises:
        AgentMuxError: CONFIG_ERROR when a file of hooks cannot be used.
    """
    agent = plan.adapter.agent
    files = HookFiles.around(Path(plan.requested_options.working_directory()), config_dir, project_dir)
    registrations = [one for one in files.effective() if one.enabled and one.agent in (ANY_AGENT, agent)]
    untrusted = files.untrusted
    if not registrations and untrusted is None:
        return None
    types = _ALL_TYPES - _types_called_by_agent(plan)
    hooks = RunHooks(registrations, dispatch_call, types, agent, plan.cwd, plan.options.prompt_text)
    if untrusted is not None:
        hooks.notes.append(f"the hooks of {untrusted} are not trusted and are not called; see `amux hooks trust`")
    return hooks


def plan_with_approvals(plan: RunPlan, find_adapter: Callable[[str], Adapter], config_dir: Path) -> RunPlan:
    """Plan the run again so that the agent requests approval before it acts, which hooks need to deny anything.

    Args:
        plan: The run as planned without hooks.
        find_adapter: Returns the adapter of an agent by its name.
        config_dir: The global directory of agent-mux.

    Raises:
        CapabilityError: The agent cannot request approvals, so its hooks could not deny any action.
    """
    try:
        return plan_run(
            replace(plan.requested_options, run_id=plan.run_id),
            find_adapter,
            config_dir / "runs",
            must_ask=True,
            callbacks=plan.callbacks,
            worktrees=config_dir / "worktrees",
            model_notes=model_notes,
        )
    except CapabilityError as error:
        hint = "the registered hooks need approval requests; hooks=False (--no-hooks) runs it without hooks"
        raise CapabilityError(error.agent, "asking first", hint=hint) from error


def _types_called_by_agent(plan: RunPlan) -> frozenset[HookType]:
    """Return the types of hooks that the agent itself reliably calls in this run."""
    native = plan.adapter.installation().hooks
    if native is None or plan.protocol.name not in native.runs:
        return frozenset()
    from agent_mux.agents.hooks.native_hooks import active_hook_types  # noqa: PLC0415  # few runs have both

    try:
        return active_hook_types(plan.adapter.agent, native, plan.environ, Path(plan.cwd))
    except AgentMuxError:
        return frozenset()  # the agent may be unable to read a file that we cannot read
