"""Listening: uvicorn, with an end that tells the truth.

When it is to stop, the runs are ended first, and whoever watches them sees how; then the connections are closed.
"""

import socket
import threading

import uvicorn
from fastapi import FastAPI

from agent_mux.service.service import Service
from agent_mux.service.settings import Settings
from agent_mux.service.sockets import LARGEST_MESSAGE, PING_EVERY, PONG_WITHIN, BoundedWebSocket

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
                ws=BoundedWebSocket,
                ws_max_size=LARGEST_MESSAGE,
                ws_ping_interval=PING_EVERY,
                ws_ping_timeout=PONG_WITHIN,
                ws_per_message_deflate=False,  # it costs time and memory for each connection, and most are local
            )
        )
        self._application = application
        self.started_event = threading.Event()
        """Set when it listens, or never will: `started` says which."""

    @property
    def service(self) -> Service:
        """What it serves, once it is started."""
        service: Service = self._application.state.service
        return service

    @property
    def url(self) -> str:
        """Where it listens, once it is started: with the port that was free, if any was wanted."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the service and listen."""
        try:
            await super().startup(sockets)
        finally:
            self.started_event.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the runs, then the connections."""
        await self.service.runs.close()
        await super().shutdown(sockets)
