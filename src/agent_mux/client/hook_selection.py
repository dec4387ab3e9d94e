"""Selects the hooks of a run that agent-mux itself calls, from the run's events.

Hooks that the agent calls natively are left out, so that no hook is called twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.agents.hooks.hooks_json import HookFiles
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.models.matching import model_notes
from agent_mux.run.hooks import RunHooks
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.hooks import ANY_AGENT, GUARDED_HOOK_TYPES, HOOK_TYPES, HookType

if TYPE_CHECKING:
    from agent_mux.loopback.hooks import FunctionHooks

_WITHOUT_EVENT: frozenset[HookType] = frozenset({"pre_compact"})
"""Types that no event reports before the action."""
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
    functions = functions_from_events(plan)
    if not registrations and untrusted is None and functions is None:
        return None
    types = _ALL_TYPES - _types_called_by_agent(plan)
    hooks = RunHooks(registrations, dispatch_call, types, agent, plan.cwd, plan.options.prompt_text, functions)
    if untrusted is not None:
        hooks.notes.append(f"the hooks of {untrusted} are not trusted and are not called; see `amux hooks trust`")
    return hooks


def functions_from_events(plan: RunPlan) -> "FunctionHooks | None":
    """Return the hook functions of the run that its agent does not call itself.

    Raises:
        CapabilityError: Such a hook can be called neither by the agent nor from the events of its runs.
    """
    adapter, hooks = plan.adapter, plan.requested_options.hooks
    functions = hooks if isinstance(hooks, Mapping) else {}
    rest = {name: function for name, function in functions.items() if name not in adapter.hooks_for_run}
    for name in rest:
        if function_hook_support(adapter, name) is None:
            why = "no event reports it" if name in _WITHOUT_EVENT else "it cannot ask for approval"
            raise CapabilityError(adapter.agent, f"the hook {name} in Python", hint=f"{why}; choose another hook type")
    if not rest:
        return None
    from agent_mux.loopback.hooks import FunctionHooks  # noqa: PLC0415  # most runs have none

    return FunctionHooks(rest, GUARDED_HOOK_TYPES, is_native=False)


def function_hook_support(adapter: Adapter, name: HookType) -> Literal["native", "approval", "events"] | None:
    """Return how a hook function is called: by the agent, when it asks for approval, from events, or not at all."""
    if name in adapter.hooks_for_run:
        return "native"
    if name in GUARDED_HOOK_TYPES:
        return "approval" if "prompt" in adapter.capabilities.approval_modes else None
    return None if name in _WITHOUT_EVENT else "events"


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
        active = active_hook_types(plan.adapter.agent, native, plan.environ, Path(plan.cwd))
    except AgentMuxError:
        return frozenset()  # the agent may be unable to read a file that we cannot read
    # The run answers permission requests. An agent that asks hooks and the run at once takes the first answer.
    return active - {"permission_request"}
