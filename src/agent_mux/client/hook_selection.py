"""Which hooks a run has, and who calls them: its agent, or the run itself from its events. Never both."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent_mux.agents.hooks.dispatch import dispatched
from agent_mux.agents.hooks.files import HookFiles
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.models.matching import model_notes
from agent_mux.run.hooks import RunHooks
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.hooks import ANY_AGENT, HOOK_TYPES, HookType

EVERY: frozenset[HookType] = frozenset(HOOK_TYPES)


def hooks_of(plan: RunPlan, own: Path, project: Path | None = None) -> RunHooks | None:
    """The hooks that this run calls; None: nobody is registered. Raises CONFIG_ERROR.

    `own`: the global directory; `project`: that of the project, instead of looking for it.
    """
    files, agent = HookFiles.around(Path(plan.requested_options.working_directory()), own, project), plan.adapter.agent
    registrations = [one for one in files.effective() if one.enabled and one.agent in (ANY_AGENT, agent)]
    untrusted = files.untrusted
    if not registrations and untrusted is None:
        return None
    types = EVERY - _called_by_agent(plan)
    hooks = RunHooks(registrations, dispatched, types, agent, plan.cwd, plan.options.prompt_text)
    if untrusted is not None:
        hooks.notes.append(f"the hooks of {untrusted} are not trusted, and not called; see `amux hooks trust`")
    return hooks


def planned_to_ask(plan: RunPlan, find_adapter: Callable[[str], Adapter], own: Path) -> RunPlan:
    """The plan again, so that the agent asks before it does anything. `own`: the global directory.

    Raises CAPABILITY_ERROR when it cannot: hooks that nobody asks would be no guard.
    """
    try:
        return plan_run(
            replace(plan.requested_options, run_id=plan.run_id),
            find_adapter,
            own / "runs",
            must_ask=True,
            worktrees=own / "worktrees",
            model_notes=model_notes,
        )
    except CapabilityError as error:
        without = "the hooks that are registered here need that; hooks=False (--no-hooks) runs it without them"
        raise CapabilityError(error.agent, "asking first", hint=without) from error


def _called_by_agent(plan: RunPlan) -> frozenset[HookType]:
    """What the agent calls in this run, as far as one can rely on it."""
    native = plan.adapter.home().hooks
    if native is None or plan.protocol.name not in native.runs:
        return frozenset()
    from agent_mux.agents.hooks.native_hooks import installed_in  # noqa: PLC0415  # few runs have both

    try:
        return installed_in(plan.adapter.agent, native, plan.environ, Path(plan.cwd))
    except AgentMuxError:
        return frozenset()  # a file that we cannot read, its agent may not read either
