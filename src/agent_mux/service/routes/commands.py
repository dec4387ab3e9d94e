"""`/v1/runs/{id}/...`: tell a run something. One path for each command; the body has its fields."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from agent_mux.errors import AnyCode, FieldError, ValidationError
from agent_mux.run import commands
from agent_mux.run.base import LARGEST_TERMINAL
from agent_mux.service.openapi.descriptions import Answer, Body, described
from agent_mux.service.routes.requests import RunId, TheService, json_answer, json_body
from agent_mux.service.views import PendingPage, Told

router = APIRouter(prefix="/v1/runs", tags=["commands"])
PATHS: Mapping[str, type[commands.Command]] = {
    "input": commands.Prompt,
    "steer": commands.Steer,
    "queue": commands.Queue,
    "approve": commands.Approve,
    "deny": commands.Deny,
    "respond": commands.Answer,
    "approve-all": commands.ApproveAll,
    "deny-all": commands.DenyAll,
    "interrupt": commands.Interrupt,
    "pause": commands.Pause,
    "resume": commands.Resume,
    "resize": commands.Resize,
    "close": commands.Close,
    "abort": commands.Abort,
    "kill": commands.Kill,
}

_ERRORS: tuple[AnyCode, ...] = (
    "RUN_NOT_FOUND",
    "RUN_NOT_ACTIVE",
    "CAPABILITY_ERROR",
    "STDIN_NOT_AVAILABLE",
    "NO_PENDING_INTERACTION",
    "INTERACTION_NOT_FOUND",
    "INVALID_STATE_TRANSITION",
    "PTY_NOT_AVAILABLE",
)
_SIZE = {"minimum": 1, "maximum": LARGEST_TERMINAL}
LIMITS: Mapping[str, Mapping[str, Any]] = {"text": {"pattern": r"\S"}, "columns": _SIZE, "rows": _SIZE}
EITHER = {
    "oneOf": [
        {"required": [one], "properties": {one: {"not": {"type": "null"}}, other: {"type": "null"}}}
        for one, other in (("text", "option"), ("option", "text"))
    ]
}
"""Exactly one of them is said."""
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "input": {"next": {"text": "now the tests"}},
    "steer": {"sooner": {"text": "only the first file"}},
    "queue": {"later": {"text": "and the changelog", "when": "next-turn"}},
    "respond": {"text": {"interactionId": "input-1", "text": "the second one"}},
    "deny": {"why": {"reason": "not on this machine"}},
    "resize": {"usual": {"columns": 120, "rows": 40}},
}


def _route(name: str, kind: type[Any]) -> Callable[..., Awaitable[Response]]:
    async def tell(run_id: RunId, request: Request, service: TheService) -> Response:
        told = await json_body(request, dict[str, Any])
        try:
            command = msgspec.convert({"type": kind.__struct_config__.tag, **told}, kind)
        except msgspec.ValidationError as error:
            raise ValidationError([FieldError("(body)", sorted(told), f"the fields of `{name}` ({error})")]) from error
        why = commands.unfit(command)
        if why:
            raise ValidationError([FieldError("(body)", sorted(told), f"what makes sense, but {why}")])
        done = await service.runs.tell(run_id, command)
        return json_answer(Told(**done, run=await service.runs.get(run_id, whole=False)))

    tell.__name__ = f"{name.replace('-', '_')}_run"
    tell.__doc__ = kind.__doc__
    required = [one.name for one in msgspec.structs.fields(kind) if one.required]
    body = Body(
        shape=kind,
        is_required=bool(required),
        examples=_EXAMPLES.get(name, {}),
        without=("type",),
        limits={name: limit for name, limit in LIMITS.items() if name in required},
        more=EITHER if kind is commands.Answer else {},
    )
    return described(Answer(Told, meaning="It is carried out."), body=body, errors=_ERRORS)(tell)


for _name, _kind in PATHS.items():
    router.post(f"/{{run_id}}/{_name}")(_route(_name, _kind))


@router.get("/{run_id}/interactions")
@described(Answer(PendingPage), errors=("RUN_NOT_FOUND",))
async def list_interactions(run_id: RunId, service: TheService) -> Response:
    """What the agent waits for now, in the order it asked."""
    view = await service.runs.get(run_id, whole=False)
    return json_answer(PendingPage(pending=view.pending or []))
