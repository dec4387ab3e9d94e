"""Listening: uvicorn, with an end that tells the truth.

When it is to stop, the runs are ended first, and whoever watches them sees how; then the connections are closed.
"""

import logging
import socket
import threading
from collections.abc import Callable
from types import FrameType

import anyio
import uvicorn
from fastapi import FastAPI

from agent_mux.errors import AgentMuxError
from agent_mux.service.connections import (
    LARGEST_MESSAGE,
    PING_INTERVAL,
    PONG_TIMEOUT,
    BoundedWebSocket,
    ConnectionRegistry,
    HttpConnection,
    default_max_connections,
)
from agent_mux.service.security.http_rules import LARGEST_HEADERS, LONGEST_TARGET
from agent_mux.service.service import Service
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.sockets import listening_sockets

CONNECTION_GRACE = 5  # seconds for what is still being sent when all runs are over
FORCED_GRACE = 2.0  # seconds for writing down how the runs ended, when nobody wants to wait for it
KEEP_ALIVE = 15  # seconds without a request
SIGNAL_POLL_INTERVAL = 0.1  # seconds between two looks at what a signal said


class HttpServer(uvicorn.Server):
    """A uvicorn server of our application."""

    def __init__(
        self, application: FastAPI, settings: ServiceSettings, *, on_start: Callable[[], None] = lambda: None
    ) -> None:
        """`on_start`: is called when it listens."""
        super().__init__(
            uvicorn.Config(
                application,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                log_config=None,
                log_level=logging.CRITICAL,  # what goes wrong in a request is logged by us, once and without secrets
                access_log=False,
                server_header=False,
                proxy_headers=False,  # whoever is not the proxy could say anything
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=CONNECTION_GRACE,
                h11_max_incomplete_event_size=LARGEST_HEADERS + LONGEST_TARGET,
                http=HttpConnection,
                ws=BoundedWebSocket,
                ws_max_size=LARGEST_MESSAGE,
                ws_ping_interval=PING_INTERVAL,
                ws_ping_timeout=PONG_TIMEOUT,
                ws_per_message_deflate=False,  # it costs time and memory for each connection, and most are local
            )
        )
        self.server_state = ConnectionRegistry(
            settings.limits.connections or default_max_connections(), settings.limits.head_timeout
        )
        self._application = application
        self._settings = settings
        self._on_start = on_start
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

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal says stop. Raises what keeps it from starting, as `AgentMuxError`."""
        own = [] if sockets else listening_sockets(self._settings.host, self._settings.port)
        try:
            super().run(sockets or own)
        finally:
            for one in own:
                one.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the service and listen. Raises `AgentMuxError` when it cannot."""
        try:
            await super().startup(sockets)
        except SystemExit as leaving:  # uvicorn's way to say that the application did not open
            failure = getattr(self._application.state, "failure", None)
            raise failure or AgentMuxError("INTERNAL", "the service did not open") from leaving
        else:
            self._on_start()
        finally:
            self.started_event.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the runs, then the connections. After a second signal: kill the runs, and wait for nothing."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._kill_on_second_signal, tasks.cancel_scope)
            await self.service.runs.close()
            tasks.cancel_scope.cancel()
        await super().shutdown(sockets)

    async def _kill_on_second_signal(self, scope: anyio.CancelScope) -> None:
        while not self.force_exit:  # noqa: ASYNC110  # set by a signal handler, which may be in another thread
            await anyio.sleep(SIGNAL_POLL_INTERVAL)
        for live in self.service.runs.alive:
            live.handle.kill()
        scope.deadline = anyio.current_time() + FORCED_GRACE

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # as uvicorn calls it
        """SIGINT or SIGTERM: stop; another one: quickly. It is the regular end, so the exit code is 0."""
        self.force_exit = self.should_exit
        self.should_exit = True
