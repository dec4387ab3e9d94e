"""`/v1/runs/{id}/ws`: a run both ways, events out and commands in. See `conversation.py`."""

from fastapi import APIRouter, WebSocket
from starlette.datastructures import QueryParams

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.service.conversation import Conversation, bare, closing, numbered
from agent_mux.service.routes.events import is_at_end, types_of
from agent_mux.service.routes.requests import the_service
from agent_mux.service.streaming import Wanted

router = APIRouter(prefix="/v1/runs", tags=["events"])
_SWITCH = {"true": True, "false": False}


@router.websocket("/{run_id}/ws")
async def talk(run_id: str, websocket: WebSocket) -> None:
    """Events and commands of a run. Query: `after`, `types`, `accumulated` as for `events`; `numbered`.

    1000: the run is over, and its result was the last message. 4404, 4422 and the like: 4000 and the status that an
    HTTP answer would have had. The query is read here, so that a browser, too, is told what is wrong with it.
    """
    await websocket.accept()
    try:
        service = the_service(websocket)
        wanted, is_numbered = _read(websocket.query_params)
        is_done = await is_at_end(service, run_id, wanted.start)
    except AgentMuxError as error:
        await websocket.close(*closing(error))
        return
    if is_done:
        await websocket.close()
        return
    conversation = Conversation(
        websocket,
        service.runs,
        service.encoded,
        run_id,
        wanted=wanted,
        frame=numbered if is_numbered else bare,
        may_command=_may_command(websocket),
    )
    await conversation.hold()


def _read(query: QueryParams) -> tuple[Wanted, bool]:
    unknown = sorted(set(query) - {"after", "types", "accumulated", "numbered"})
    if unknown:
        raise ValidationError([FieldError(unknown[0], query[unknown[0]], "after, types, accumulated, numbered")])
    wanted = Wanted(
        start=_number(query.get("after", "-1")) + 1,
        types=types_of(query.get("types")),
        accumulated=_switch("accumulated", query.get("accumulated", "true")),
    )
    return wanted, _switch("numbered", query.get("numbered", "false"))


def _number(said: str) -> int:
    if said == "-1" or (said.isascii() and said.isdigit() and len(said) <= 15):
        return int(said)
    raise ValidationError([FieldError("after", said, "the number of an event, or -1")])


def _switch(name: str, said: str) -> bool:
    if said not in _SWITCH:
        raise ValidationError([FieldError(name, said, "true or false")])
    return _SWITCH[said]


def _may_command(websocket: WebSocket) -> bool:
    """To watch, the scope `read` is enough, which whoever is here has; to say something, it takes `run`."""
    caller = getattr(websocket.state, "caller", None)
    return caller is None or bool(caller.may("run"))
