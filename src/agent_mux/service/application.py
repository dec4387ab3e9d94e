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
    """With the guard in front of everything, also of what answers when something of ours fails."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics, **chosen: Any) -> None:
        super().__init__(**chosen)
        self._settings = settings
        self._metrics = metrics

    def build_middleware_stack(self) -> ASGIApp:
        """As FastAPI makes it, behind the guard; what the guard refuses is counted, too."""
        guard = Guard(super().build_middleware_stack(), self._settings, lambda: self.state.service.authenticator)
        return MetricsMiddleware(guard, self._metrics)


def make_application(settings: ServiceSettings, adapters: AdapterRegistry | None = None) -> FastAPI:
    """All routes; the service opens with the application's life, and is `application.state.service` then."""
    metrics_of_service = Metrics()

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        try:
            async with open_service(settings, adapters, metrics_of_service) as service:
                application.state.service = service
                yield
        except AgentMuxError as error:
            application.state.failure = error  # whoever serves it wants the sentence
            raise

    application = _GuardedApplication(
        settings,
        metrics_of_service,
        title="agent-mux",
        version=__version__,
        lifespan=life,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a path is what it is; its Location would repeat a Host that somebody else chose
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        application.include_router(router)
        application.include_router(head_routes(router))
    application.openapi = cache(partial(openapi_document, application))  # type: ignore[method-assign]
    problems.install_handlers(application)
    return application


def head_routes(router: APIRouter) -> APIRouter:
    """A route for HEAD beside each one for GET. The OpenAPI document leaves them out: they say nothing of their own."""
    made = APIRouter()
    for route in router.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not _is_stream(route.name):
            made.add_api_route(
                route.path,
                route.endpoint,
                methods=["HEAD"],
                name=route.name,
                include_in_schema=False,
                route_class_override=type(route),
            )
    return made


def _is_stream(name: str) -> bool:
    said = DESCRIBED.get(name)
    return said is not None and said.is_stream
