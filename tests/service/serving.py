"""A real server on a loopback port: in a thread of this process, so that tests of any event loop can talk to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.application import make_application
from agent_mux.service.server import HttpServer
from agent_mux.service.service import Service
from agent_mux.service.settings import ServiceSettings

PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Serving:
    """A server that answers."""

    url: str
    service: Service
    http: httpx.Client
    server: HttpServer


@contextmanager
def serving(directory: Path, adapters: AdapterRegistry | None = None, **chosen: Any) -> Iterator[Serving]:
    """Serve, until the block is left. `chosen`: fields of `Settings`."""
    settings = ServiceSettings(**{"config_dir": directory, "port": 0, "drain": 0, **chosen})
    server = HttpServer(make_application(settings, adapters), settings)
    thread = threading.Thread(target=server.run, name="server")
    thread.start()
    try:
        assert server.started_event.wait(PATIENCE), "the server did not start"
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
            yield Serving(server.url, server.service, http, server)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"
