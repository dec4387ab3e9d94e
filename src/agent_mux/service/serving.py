"""Listening: uvicorn, with an end that tells the truth.

When it is to stop, the runs are ended first, and whoever watches them sees how; then the connections are closed.
"""

import socket

import uvicorn
from fastapi import FastAPI

from agent_mux.service.settings import Settings

GRACE_OF_CONNECTIONS = 5  # seconds for what is still being sent when all runs are over
LARGEST_HEADERS = 1 << 14  # bytes
KEEP_ALIVE = 15  # seconds without a request


class Server(uvicorn.Server):
    """A uvicorn server of our application."""

    def __init__(self, application: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=GRACE_OF_CONNECTIONS,
                h11_max_incomplete_event_size=LARGEST_HEADERS,
                http="h11",
                ws="websockets-sansio",
            )
        )
        self._application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the runs, then the connections."""
        service = getattr(self._application.state, "service", None)
        if service is not None:
            await service.runs.close()
        await super().shutdown(sockets)
