"""`/health`, `/ready` and `/metrics`: liveness, readiness, and metrics for Prometheus. The first two need no token."""

from typing import Literal

from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response

from agent_mux._util.version import __version__
from agent_mux.api import JsonView
from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.routes.requests import current_service, json_answer

operations = OperationGroup(tag="health")


class Health(JsonView, kw_only=True):
    """State and version of the service."""

    status: Literal["ok", "ready"]
    version: str


@operations.get("/health", ResponseSpec(Health))
async def health(_: Request) -> Response:
    """Check that the process is alive."""
    return json_answer(Health(status="ok", version=__version__))


@operations.get("/ready", ResponseSpec(Health), errors=("UNAVAILABLE",))
async def ready(request: Request) -> Response:
    """Check that the service can start runs: the database answers, and it is not draining. Otherwise 503."""
    service = current_service(request)
    await service.database.ping()
    service.starter.require_accepting()
    return json_answer(Health(status="ready", version=__version__))


@operations.get(
    "/metrics",
    ResponseSpec(other_media={"text/plain": str, "application/openmetrics-text": str}),
    errors=("VALIDATION_ERROR",),
)
async def read_metrics(request: Request) -> Response:
    """Get metrics in the Prometheus text format, or in OpenMetrics with `Accept: application/openmetrics-text`."""
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(current_service(request).metrics.registry), headers={"content-type": content_type})
