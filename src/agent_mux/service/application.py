"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from agent_mux.errors import AgentMuxError
from agent_mux.registry import AdapterRegistry
from agent_mux.service import problems
from agent_mux.service.routes import commands, events, health, runs
from agent_mux.service.service import open_service
from agent_mux.service.settings import Settings
from agent_mux.version import __version__


def make_application(settings: Settings, adapters: AdapterRegistry | None = None) -> FastAPI:
    """All routes; the service opens with the application's life, and is `application.state.service` then."""

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        try:
            async with open_service(settings, adapters) as service:
                application.state.service = service
                yield
        except AgentMuxError as error:
            application.state.failure = error  # whoever serves it wants the sentence
            raise

    application = FastAPI(
        title="agent-mux",
        version=__version__,
        lifespan=life,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    for room in (health, runs, events, commands):
        application.include_router(room.router)
    problems.install(application)
    return application
