"""`/metrics`: what the service counts and measures, in the formats of Prometheus and OpenMetrics."""

from typing import Annotated

from fastapi import APIRouter, Header
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from agent_mux.service.openapi.describing import Answer, described
from agent_mux.service.routes.requests import TheService

router = APIRouter(tags=["health"])


@router.get("/metrics")
@described(Answer(also={"text/plain": str, "application/openmetrics-text": str}))
async def read_metrics(service: TheService, accept: Annotated[str, Header()] = "") -> Response:
    """Metrics: OpenMetrics if `Accept` asks for `application/openmetrics-text`, else the text format of Prometheus."""
    encode, content_type = choose_encoder(accept)
    return Response(encode(service.metrics.registry), headers={"content-type": content_type})
