"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial

from fastapi import FastAPI

from agent_mux.registry import AdapterRegistry
from agent_mux.service import problems
from agent_mux.service.metering import Metering
from agent_mux.service.metrics import Metrics
from agent_mux.service.openapi.document import openapi_document
from agent_mux.service.routes import (
    agents,
    commands,
    cost,
    events,
    health,
    metrics,
    models,
    profiles,
    runs,
    sessions,
    webhooks,
    websocket,
)
from agent_mux.service.service import open_service
from agent_mux.service.settings import Settings
from agent_mux.version import __version__

ROOMS = (health, metrics, runs, events, commands, websocket, webhooks, agents, models, sessions, cost, profiles)


def make_application(settings: Settings, adapters: AdapterRegistry | None = None) -> FastAPI:
    """All routes; the service opens with the application's life, and is `application.state.service` then."""
    counted = Metrics()

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        async with open_service(settings, adapters, counted) as service:
            application.state.service = service
            yield

    application = FastAPI(
        title="agent-mux",
        version=__version__,
        lifespan=life,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a path is what it is; its Location would repeat a Host that somebody else chose
        generate_unique_id_function=lambda route: route.name,
    )
    for room in ROOMS:
        application.include_router(room.router)
    application.openapi = cache(partial(openapi_document, application))  # type: ignore[method-assign]
    problems.install(application)
    application.add_middleware(Metering, metrics=counted)  # the last one is the outermost
    return application
