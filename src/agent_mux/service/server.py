"""The uvicorn server. It ends the runs before it closes connections, so that readers receive the final events.

Each SIGINT or SIGTERM moves it one stage further: it drains (no new runs; active ones may end), aborts the runs within
their grace periods, and finally kills them.
"""

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum, auto
from types import FrameType

import anyio
import uvicorn
from starlette.applications import Starlette

from agent_mux._util.logs import LOGGER
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

CONNECTION_GRACE = 5  # seconds to send pending data once all runs have ended
FORCED_GRACE = 2.0  # seconds to store the outcomes of runs after a second signal
KEEP_ALIVE = 15  # seconds without a request
SIGNAL_POLL_INTERVAL = 0.1  # seconds
_MORE_SIGNALS = (signal.SIGHUP, signal.SIGQUIT)


class Stage(IntEnum):
    """The stages of a server, in order. Signals and time move it forward, never back."""

    SERVING = auto()
    DRAINING = auto()
    ABORTING = auto()
    KILLING = auto()


class HttpServer(uvicorn.Server):
    """A uvicorn server for the service's application."""

    def __init__(
        self, application: Starlette, settings: ServiceSettings, *, on_start: Callable[[], None] = lambda: None
    ) -> None:
        """`on_start`: called once it listens."""
        super().__init__(
            uvicorn.Config(
                application,
                host=settings.host,
                port=settings.port,
                lifespan="on",
                log_config=None,
                log_level=logging.CRITICAL,  # request errors are logged by us, once and without secrets
                access_log=False,
                server_header=False,
                proxy_headers=False,  # any client could forge them
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=CONNECTION_GRACE,
                h11_max_incomplete_event_size=LARGEST_HEADERS + LONGEST_TARGET,
                http=HttpConnection,
                ws=BoundedWebSocket,
                ws_max_size=LARGEST_MESSAGE,
                ws_ping_interval=PING_INTERVAL,
                ws_ping_timeout=PONG_TIMEOUT,
                ws_per_message_deflate=False,  # costs time and memory per connection, and most clients are local
            )
        )
        self.server_state = ConnectionRegistry(
            settings.limits.connections or default_max_connections(), settings.limits.head_timeout
        )
        self._application = application
        self._settings = settings
        self._on_start = on_start
        self.stage = Stage.SERVING
        self.started_event = threading.Event()
        """Set when startup has ended; `started` is true if it succeeded."""

    @property
    def service(self) -> Service:
        """The open service. Only available once the server has started."""
        service: Service = self._application.state.service
        return service

    @property
    def url(self) -> str:
        """The URL that it listens on, with the actual port. Only available once the server has started."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal. Raises `AgentMuxError` when it cannot start."""
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
        except SystemExit as exit_:  # uvicorn raises it when the application's lifespan fails
            failure = getattr(self._application.state, "failure", None)
            raise failure or AgentMuxError("INTERNAL", "the service failed to start; see its log") from exit_
        else:
            self._on_start()
        finally:
            self.started_event.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, end the remaining runs, then close the connections."""
        self.stage = max(self.stage, self._first_stage)
        draining = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_signals, draining, tasks.cancel_scope)
            if self.stage == Stage.DRAINING:
                await self._drain(draining)
            self.stage = max(self.stage, Stage.ABORTING)
            async with anyio.create_task_group() as closing:
                closing.start_soon(self.service.starter.close)
                closing.start_soon(self.service.comparisons.close)
            tasks.cancel_scope.cancel()
        await super().shutdown(sockets)

    @property
    def _first_stage(self) -> Stage:
        return Stage.DRAINING if self._settings.drain > 0 else Stage.ABORTING

    async def _drain(self, scope: anyio.CancelScope) -> None:
        """Wait until the runs have ended, at most for the time of the settings. Cancelling `scope` ends the wait."""
        log, seconds = logging.getLogger(LOGGER), self._settings.drain
        count = len(self.service.runs.alive)
        if count:
            log.warning("draining: waiting up to %g s for %s to end; another signal aborts", seconds, _runs(count))
        scope.deadline = anyio.current_time() + seconds
        with scope:
            await self.service.starter.drain(seconds)
            await self.service.comparisons.wait_over()
        if scope.cancelled_caught:
            log.warning("the drain is over: aborting %s", _runs(len(self.service.runs.alive)))

    async def _follow_signals(self, draining: anyio.CancelScope, closing: anyio.CancelScope) -> None:
        """End the drain at the second signal, and kill the runs at the next one."""
        while self.stage < Stage.KILLING:
            await anyio.sleep(SIGNAL_POLL_INTERVAL)  # a signal handler, which may be in another thread, sets the stage
            await self.on_tick(0)  # uvicorn's main loop has ended; this keeps the Date header current
            if self.stage > Stage.DRAINING:
                draining.cancel()
        for live in self.service.runs.alive:
            live.handle.kill()
        self.service.comparisons.kill()
        closing.deadline = anyio.current_time() + FORCED_GRACE

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGQUIT and SIGHUP as well as uvicorn's SIGINT and SIGTERM."""
        with super().capture_signals():
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            # A parent that ignores SIGHUP (nohup) wants the server to stay.
            numbers = [one for one in _MORE_SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
            before = {number: signal.signal(number, self.handle_exit) for number in numbers}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn's signature
        """Handle a signal that ends the server: drain, at the next one abort the runs, at the next one kill them.

        The exit code is 0, since this is a regular end.
        """
        is_first = self.stage == Stage.SERVING
        self.stage = self._first_stage if is_first else Stage(min(self.stage + 1, Stage.KILLING))
        self.should_exit = True
        self.force_exit = self.stage == Stage.KILLING


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
