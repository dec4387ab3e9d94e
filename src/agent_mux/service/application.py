"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service import problems
from agent_mux.service.access_log import AccessLogMiddleware
from agent_mux.service.metrics import Metrics, MetricsMiddleware
from agent_mux.service.openapi.document import openapi_document
from agent_mux.service.openapi.operations import Operation
from agent_mux.service.routes import (
    agents,
    audit,
    commands,
    comparison_trials,
    comparisons,
    events,
    files,
    health,
    profiles,
    quota,
    runs,
    session_changes,
    sessions,
    webhooks,
)
from agent_mux.service.security.guard import Guard
from agent_mux.service.service import open_service
from agent_mux.service.settings import ServiceSettings

OPERATIONS: tuple[Operation, ...] = tuple(
    chain(
        health.operations,
        runs.operations,
        events.operations,
        commands.operations,
        files.operations,
        comparisons.operations,
        comparison_trials.operations,
        webhooks.operations,
        audit.operations,
        agents.operations,
        agents.model_operations,
        sessions.operations,
        session_changes.operations,
        sessions.cost_operations,
        profiles.operations,
        quota.operations,
    )
)


class _GuardedApplication(Starlette):
    """A Starlette application behind the guard, which also covers the responses of Starlette's own error handling."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics, **chosen: Any) -> None:
        super().__init__(**chosen)
        self._settings = settings
        self._metrics = metrics

    def build_middleware_stack(self) -> ASGIApp:
        """Return Starlette's stack behind the guard, which the metrics and the access log enclose to see refusals."""
        guard = Guard(
            super().build_middleware_stack(),
            self._settings,
            lambda: self.state.service.authenticator,
            lambda: self.state.service.limiter,
        )
        return AccessLogMiddleware(MetricsMiddleware(guard, self._metrics))


def make_application(settings: ServiceSettings, adapters: AdapterRegistry | None = None) -> Starlette:
    """Build the application with all routes.

    The service opens when the application starts and closes when it ends; in between it is `application.state.service`.
    An `AgentMuxError` that keeps it from opening is `application.state.failure`.
    """
    service_metrics = Metrics()

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        try:
            async with open_service(settings, adapters, service_metrics) as service:
                application.state.service = service
                yield
        except AgentMuxError as error:
            application.state.failure = error  # the server reports its message
            raise

    routes = [
        Route("/openapi.json", _read_document),
        *(operation.route for operation in OPERATIONS),
        WebSocketRoute("/v1/runs/{run_id}/ws", events.connect_run),
    ]
    application = _GuardedApplication(settings, service_metrics, routes=routes, lifespan=lifespan)
    application.router.redirect_slashes = False  # the Location of a redirect would repeat the Host that the client sent
    problems.install_handlers(application)
    return application


@cache
def _encoded_document() -> bytes:
    return to_json_bytes(openapi_document(OPERATIONS))


async def _read_document(_: Request) -> Response:
    return Response(_encoded_document(), media_type="application/json")
