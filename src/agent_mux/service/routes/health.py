"""`/health`, `/ready` and `/metrics`: liveness, readiness, and metrics for Prometheus. The first two need no token."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from agent_mux._util.version import __version__
from agent_mux.api import JsonView
from agent_mux.service.openapi.descriptions import ResponseSpec, described
from agent_mux.service.routes.requests import CurrentService, json_answer

router = APIRouter(tags=["health"])


class Health(JsonView, kw_only=True):
    """State and version of the service."""

    status: Literal["ok", "ready"]
    version: str


@router.get("/health")
@described(ResponseSpec(Health))
async def health() -> Response:
    """Check that the process is alive."""
    return json_answer(Health(status="ok", version=__version__))


@router.get("/ready")
@described(ResponseSpec(Health), errors=("UNAVAILABLE",))
async def ready(service: CurrentService) -> Response:
    """Check that the service can start runs: the database answers and it is not shutting down. Otherwise 503."""
    await service.database.ping()
    service.runs.require_open()
    return json_answer(Health(status="ready", version=__version__))


@router.get("/metrics")
@described(ResponseSpec(other_media={"text/plain": str, "application/openmetrics-text": str}))
async def read_metrics(service: CurrentService, accept: Annotated[str, Header()] = "") -> Response:
    """Get metrics in the Prometheus text format, or in OpenMetrics with `Accept: application/openmetrics-text`."""
    encode, content_type = choose_encoder(accept)
    return Response(encode(service.metrics.registry), headers={"content-type": content_type})
