"""Commands of callers to runs, recorded in the audit trail before they are carried out."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agent_mux.errors import AgentMuxError
from agent_mux.run import commands
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.sdk.options import RunOptions
from agent_mux.service.audit.entries import Action, Actor
from agent_mux.service.service import Service
from agent_mux.settings.named_paths import start_at, with_absolute_files

MAX_NAMED = 20
"""Interactions that the entry of one command names."""
_ACTIONS: Mapping[type[commands.RunCommand], Action] = {
    commands.PromptCommand: "run.prompt",
    commands.SteerCommand: "run.steer",
    commands.QueueCommand: "run.queue",
    commands.ApproveCommand: "run.approve",
    commands.DenyCommand: "run.deny",
    commands.AnswerCommand: "run.answer",
    commands.ApproveAllCommand: "run.approve_all",
    commands.DenyAllCommand: "run.deny_all",
    commands.SetModelCommand: "run.set_model",
    commands.SetApprovalModeCommand: "run.set_approval_mode",
    commands.InterruptCommand: "run.interrupt",
    commands.PauseCommand: "run.pause",
    commands.ResumeCommand: "run.resume",
    commands.CloseCommand: "run.close",
    commands.AbortCommand: "run.abort",
    commands.KillCommand: "run.kill",
}
"""The recorded commands. `status` changes nothing; `resize` comes with each movement of a window."""


async def execute_recorded(service: Service, actor: Actor, run_id: str, command: commands.AnyCommand) -> dict[str, Any]:
    """Carry out a command on an active run. A run that is over needs none to end it, so nothing is recorded then.

    Raises what the run raises, VALIDATION_ERROR for a file outside of the roots, and UNAVAILABLE if the command cannot
    be recorded.
    """
    try:
        live = await service.runs.active(run_id)
    except AgentMuxError as error:
        if error.code == "RUN_NOT_ACTIVE" and commands.command_name(command) in commands.ALLOWED_AFTER_THE_END:
            return {"delivery": "unneeded"}
        raise
    command = _with_path_in_root(service, live.handle, command)
    async with _recorded(service, actor, live.handle, command):
        return await live.execute(command)


async def execute_on_trial(
    service: Service, actor: Actor, comparison_id: str, trial: str, command: commands.AnyCommand
) -> tuple[RunHandle, dict[str, Any]]:
    """Carry out a command on the active run of a trial, in the same way. Also raises NOT_FOUND.

    Returns the handle of the run, and the data for the response.
    """
    handle = await service.comparisons.handle_of(comparison_id, trial)
    command = _with_path_in_root(service, handle, command)
    async with _recorded(service, actor, handle, command, comparison=comparison_id, trial=trial):
        return handle, await commands.execute_command(handle, command)


@asynccontextmanager
async def _recorded(
    service: Service, actor: Actor, handle: RunHandle, command: commands.AnyCommand, **where: str
) -> AsyncGenerator[None, None]:
    action = _ACTIONS.get(type(command))
    if action is None:
        yield
        return
    async with service.audit.recorded(actor, action, "run", handle.run_id, **_detail(handle, command), **where):
        _require_allowed_model(service, handle, command)
        yield


def _with_path_in_root(service: Service, handle: RunHandle, command: commands.AnyCommand) -> commands.AnyCommand:
    """Return the command; a relative path in a new model starts at the first root, as in a request for a run."""
    if not isinstance(command, commands.SetModelCommand):
        return command
    adapters, absolute = service.mux.adapters, start_at(lambda: service.roots.default)
    fields = with_absolute_files({"model": command.model}, handle.agent, adapters, absolute)
    return commands.SetModelCommand(fields["model"])


def _require_allowed_model(service: Service, handle: RunHandle, command: commands.AnyCommand) -> None:
    """Raise `ValidationError` for a change to a model that is a file outside of the roots, as for a new run."""
    if isinstance(command, commands.SetModelCommand):
        options = RunOptions(agent=handle.agent, model=command.model, cwd=handle.header.codec.cwd)
        service.roots.check_named_files(options, service.mux.adapters, {"model"})


def _detail(handle: RunHandle, command: commands.AnyCommand) -> dict[str, Any]:
    pending = list(handle.interaction.pending)
    detail: dict[str, Any] = {}
    match command:
        case commands.PromptCommand(text=text) | commands.SteerCommand(text=text) | commands.QueueCommand(text=text):
            detail = {"characters": len(text)}
        case commands.ApproveCommand() | commands.DenyCommand() | commands.AnswerCommand():
            options = {name: getattr(command, name, None) for name in ("always", "option")}
            detail = {**_interaction(pending, command.interaction_id), **options}
        case commands.SetModelCommand(model=model):
            detail = {"model": model}
        case commands.SetApprovalModeCommand(mode=mode):
            detail = {"mode": mode}
        case commands.ApproveAllCommand():
            detail = _interactions(one for one in pending if one.type == "approval")
        case commands.DenyAllCommand():
            detail = _interactions(iter(pending))
    return detail


def _interaction(pending: list[PendingInteraction], id_: str | None) -> dict[str, Any]:
    """Return which interaction a command answers; without an id, the oldest pending approval."""
    found = next((one for one in pending if (one.id == id_ if id_ else one.type == "approval")), None)
    return {"interactionId": id_} if found is None else {"interactionId": found.id, "description": found.description}


def _interactions(pending: Iterator[PendingInteraction]) -> dict[str, Any]:
    ids = [one.id for one in pending]
    return {"count": len(ids), "interactionIds": ids[:MAX_NAMED]}
