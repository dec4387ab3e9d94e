"""`/health` and `/ready`: whether the process lives, and whether it can work. Nothing secret; no token is needed."""

from fastapi import APIRouter
from starlette.responses import Response

from agent_mux._util.version import __version__
from agent_mux.service.openapi.describing import Answer, described
from agent_mux.service.routes.requests import TheService, json_answer
from agent_mux.service.views import Health

router = APIRouter(tags=["health"])


@router.get("/health")
@described(Answer(Health))
async def health() -> Response:
    """The process lives and answers."""
    return json_answer(Health(status="ok", version=__version__))


@router.get("/ready")
@described(Answer(Health), errors=("UNAVAILABLE",))
async def ready(service: TheService) -> Response:
    """It can take runs: the database answers, and it is not shutting down. Else 503."""
    await service.database.ping()
    service.runs.require_open()
    return json_answer(Health(status="ready", version=__version__))
