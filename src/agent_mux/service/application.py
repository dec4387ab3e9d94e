"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from agent_mux._util.version import __version__
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service import problems
from agent_mux.service.metrics import Metrics, MetricsMiddleware
from agent_mux.service.openapi.descriptions import DESCRIBED
from agent_mux.service.openapi.document import openapi_document
from agent_mux.service.routes import agents, commands, events, health, profiles, runs, sessions, webhooks
from agent_mux.service.security.guard import Guard
from agent_mux.service.service import open_service
from agent_mux.service.settings import ServiceSettings

ROUTERS = (
    health.router,
    runs.router,
    events.router,
    commands.router,
    webhooks.router,
    agents.router,
    agents.models_router,
    sessions.router,
    sessions.cost_router,
    profiles.router,
)


class _GuardedApplication(FastAPI):
    """A FastAPI application behind the guard, which also covers the responses of FastAPI's own error handling."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics, **chosen: Any) -> None:
        super().__init__(**chosen)
        self._settings = settings
        self._metrics = metrics

    def build_middleware_stack(self) -> ASGIApp:
        """Return FastAPI's stack behind the guard and the metrics middleware, which also counts refused requests."""
        guard = Guard(super().build_middleware_stack(), self._settings, lambda: self.state.service.authenticator)
        return MetricsMiddleware(guard, self._metrics)


def make_application(settings: ServiceSettings, adapters: AdapterRegistry | None = None) -> FastAPI:
    """Build the application with all routes.

    The service opens when the application starts and closes when it ends; in between it is `application.state.service`.
    An `AgentMuxError` that keeps it from opening is `application.state.failure`.
    """
    service_metrics = Metrics()

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        try:
            async with open_service(settings, adapters, service_metrics) as service:
                application.state.service = service
                yield
        except AgentMuxError as error:
            application.state.failure = error  # the server reports its message
            raise

    application = _GuardedApplication(
        settings,
        service_metrics,
        title="agent-mux",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # the page loads scripts from other sites
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # the Location of a redirect would repeat the Host that the client sent
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        application.include_router(router)
        application.include_router(head_routes(router))
    application.openapi = cache(partial(openapi_document, application))  # type: ignore[method-assign]
    problems.install_handlers(application)
    return application


def head_routes(router: APIRouter) -> APIRouter:
    """Return a router that answers HEAD wherever `router` answers GET, except for streams.

    The server omits the body of such a response (RFC 9110, section 9.3.2). Streams have none: only reading a stream
    shows whether there are events. The OpenAPI document omits these routes.
    """
    head_router = APIRouter()
    for route in router.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not _is_stream(route.name):
            head_router.add_api_route(
                route.path,
                route.endpoint,
                methods=["HEAD"],
                name=route.name,
                include_in_schema=False,
                route_class_override=type(route),
            )
    return head_router


def _is_stream(name: str) -> bool:
    spec = DESCRIBED.get(name)
    return spec is not None and spec.is_stream
