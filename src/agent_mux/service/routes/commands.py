"""`/v1/runs/{id}/...`: commands to a run, one path for each. The body has the fields of the command."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.errors import AnyCode, FieldError, ValidationError
from agent_mux.run import commands
from agent_mux.run.base import MAX_TERMINAL_SIZE
from agent_mux.service.control import execute_recorded
from agent_mux.service.openapi.descriptions import BodySpec, ResponseSpec
from agent_mux.service.openapi.operations import Endpoint, OperationGroup
from agent_mux.service.routes.requests import current_actor, current_service, json_answer, json_body, run_id_of
from agent_mux.service.views import CommandResult, PendingPage

operations = OperationGroup("/v1/runs", tag="commands")
COMMANDS: Mapping[str, type[commands.RunCommand]] = {
    "input": commands.PromptCommand,
    "steer": commands.SteerCommand,
    "queue": commands.QueueCommand,
    "approve": commands.ApproveCommand,
    "deny": commands.DenyCommand,
    "respond": commands.AnswerCommand,
    "approve-all": commands.ApproveAllCommand,
    "deny-all": commands.DenyAllCommand,
    "set-model": commands.SetModelCommand,
    "set-approval-mode": commands.SetApprovalModeCommand,
    "interrupt": commands.InterruptCommand,
    "pause": commands.PauseCommand,
    "resume": commands.ResumeCommand,
    "resize": commands.ResizeCommand,
    "close": commands.CloseCommand,
    "abort": commands.AbortCommand,
    "kill": commands.KillCommand,
}

COMMAND_ERRORS: tuple[AnyCode, ...] = (
    "RUN_NOT_FOUND",
    "RUN_NOT_ACTIVE",
    "CAPABILITY_ERROR",
    "STDIN_NOT_AVAILABLE",
    "NO_PENDING_INTERACTION",
    "INTERACTION_NOT_FOUND",
    "INVALID_STATE_TRANSITION",
    "PTY_NOT_AVAILABLE",
)
_SIZE = {"minimum": 1, "maximum": MAX_TERMINAL_SIZE}
CONSTRAINTS: Mapping[str, Mapping[str, Any]] = {
    "text": {"pattern": r"\S"},
    "model": {"pattern": r"\S"},
    "columns": _SIZE,
    "rows": _SIZE,
}
TEXT_OR_OPTION = {
    "oneOf": [
        {"required": [one], "properties": {one: {"not": {"type": "null"}}, other: {"type": "null"}}}
        for one, other in (("text", "option"), ("option", "text"))
    ]
}
"""Exactly one of them is required."""
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "input": {"next": {"text": "now the tests"}},
    "steer": {"sooner": {"text": "only the first file"}},
    "queue": {"later": {"text": "and the changelog", "when": "next-turn"}},
    "set-model": {"other": {"model": "claude-haiku-4-5"}},
    "set-approval-mode": {"plan": {"mode": "plan"}},
    "respond": {"text": {"interactionId": "input-1", "text": "the second one"}},
    "deny": {"why": {"reason": "not on this machine"}},
    "resize": {"usual": {"columns": 120, "rows": 40}},
}


async def read_command(request: Request, name: str, kind: type[Any]) -> Any:
    """Return the command in the body of a request. Raises `ValidationError`."""
    payload = await json_body(request, dict[str, Any])
    try:
        command = msgspec.convert({"type": kind.__struct_config__.tag, **payload}, kind)
    except msgspec.ValidationError as error:
        raise ValidationError([FieldError("(body)", sorted(payload), f"the fields of `{name}` ({error})")]) from error
    reason = commands.find_problem(command)
    if reason:
        raise ValidationError([FieldError("(body)", sorted(payload), f"a valid command, but {reason}")])
    return command


def _endpoint(name: str, kind: type[Any]) -> Endpoint:
    async def send(request: Request) -> Response:
        run_id, service = run_id_of(request), current_service(request)
        command = await read_command(request, name, kind)
        result = await execute_recorded(service, current_actor(request), run_id, command)
        return json_answer(CommandResult(**result, run=await service.runs.get(run_id, full=False)))

    send.__name__ = f"{name.replace('-', '_')}_run"
    send.__doc__ = kind.__doc__
    return send


def command_body(name: str, kind: type[Any]) -> BodySpec:
    """Return how the body of a command is described."""
    required = [one.name for one in msgspec.structs.fields(kind) if one.required]
    return BodySpec(
        shape=kind,
        is_required=bool(required),
        examples=_EXAMPLES.get(name, {}),
        omitted=("type",),
        constraints={name: limit for name, limit in CONSTRAINTS.items() if name in required},
        extra=TEXT_OR_OPTION if kind is commands.AnswerCommand else {},
    )


for _name, _kind in COMMANDS.items():
    operations.post(
        f"/{{run_id}}/{_name}",
        ResponseSpec(CommandResult, description="The command was executed."),
        body=command_body(_name, _kind),
        errors=COMMAND_ERRORS,
    )(_endpoint(_name, _kind))


@operations.get("/{run_id}/interactions", ResponseSpec(PendingPage), errors=("RUN_NOT_FOUND",))
async def list_interactions(request: Request) -> Response:
    """List the interactions that the agent waits for, in the order of its requests."""
    run_id, service = run_id_of(request), current_service(request)
    view = await service.runs.get(run_id, full=False)
    return json_answer(PendingPage(pending=view.pending or []))
