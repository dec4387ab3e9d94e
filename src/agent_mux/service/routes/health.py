"""`/health` and `/ready`: whether the process lives, and whether it can work. Nothing secret; no token is needed.

`/metrics`: what the service counts and measures, in the formats of Prometheus and OpenMetrics."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from agent_mux._util.version import __version__
from agent_mux.api import Shape
from agent_mux.service.openapi.descriptions import ResponseSpec, described
from agent_mux.service.routes.requests import CurrentService, json_answer


class Health(Shape, kw_only=True):
    """The process lives."""

    status: Literal["ok", "ready"]
    version: str


router = APIRouter(tags=["health"])


@router.get("/health")
@described(ResponseSpec(Health))
async def health() -> Response:
    """The process lives and answers."""
    return json_answer(Health(status="ok", version=__version__))


@router.get("/ready")
@described(ResponseSpec(Health), errors=("UNAVAILABLE",))
async def ready(service: CurrentService) -> Response:
    """It can take runs: the database answers, and it is not shutting down. Else 503."""
    await service.database.ping()
    service.runs.require_open()
    return json_answer(Health(status="ready", version=__version__))


@router.get("/metrics")
@described(ResponseSpec(other_media={"text/plain": str, "application/openmetrics-text": str}))
async def read_metrics(service: CurrentService, accept: Annotated[str, Header()] = "") -> Response:
    """Metrics: OpenMetrics if `Accept` asks for `application/openmetrics-text`, else the text format of Prometheus."""
    encode, content_type = choose_encoder(accept)
    return Response(encode(service.metrics.registry), headers={"content-type": content_type})
