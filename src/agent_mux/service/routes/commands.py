"""`/v1/runs/{id}/...`: tell a run something. One path for each command; the body has its fields."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from agent_mux.errors import FieldError, ValidationError
from agent_mux.run import commands
from agent_mux.service.routes.answers import RunId, TheService, json_answer, json_body

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


def _route(name: str, kind: type[Any]) -> Callable[..., Awaitable[Response]]:
    async def tell(run_id: RunId, request: Request, service: TheService) -> Response:
        told = await json_body(request, dict[str, Any])
        try:
            command = msgspec.convert({**told, "type": kind.__struct_config__.tag}, kind)
        except msgspec.ValidationError as error:
            raise ValidationError([FieldError("(body)", sorted(told), f"the fields of `{name}` ({error})")]) from error
        why = commands.unfit(command)
        if why:
            raise ValidationError([FieldError("(body)", sorted(told), why)])
        done = await service.runs.tell(run_id, command)
        return json_answer({**done, "run": await service.runs.get(run_id, whole=False)})

    tell.__name__ = f"{name.replace('-', '_')}_run"
    tell.__doc__ = kind.__doc__
    return tell


for _name, _kind in PATHS.items():
    router.post(f"/{{run_id}}/{_name}")(_route(_name, _kind))


@router.get("/{run_id}/interactions")
async def list_interactions(run_id: RunId, service: TheService) -> Response:
    """What the agent waits for now, in the order it asked."""
    view = await service.runs.get(run_id, whole=False)
    return json_answer({"pending": view.pending or []})
