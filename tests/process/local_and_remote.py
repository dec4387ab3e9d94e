"""Run the same tests with a local client and with a client of a service.

The tests of a module marked `local_and_remote` run once with each kind of client. A test that supports only local runs
is marked `local_only`, with one of the reasons below.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.process.scripted import MakeClient, split_arguments

from agent_mux import RemoteMux
from agent_mux.sdk.registry import AdapterRegistry

if TYPE_CHECKING:
    from tests.service.serving import Serving

CLIENT_KINDS = ("local", "remote")
SERVICE_SETTINGS = ("max_concurrent_runs", "max_concurrent_runs_per_agent", "queue_limit")
"""Client arguments that are settings of the service when the client is remote."""


class LocalOnly(Enum):
    """Reasons why a test runs with a local client only."""

    INTERNALS = "it inspects the runner, the reaper or the queue"
    JOURNAL = "a service always keeps its recordings, in its own directory"
    OWNER = "the token determines the owner of a remote run"
    ENVIRONMENT = "an observer cannot add to the environment of an agent that a service starts"
    NOTES = "the recording of a service does not contain its clients' notes"
    SETTINGS = "the setting is validated when the service starts"
    CONNECTIONS = "each client that watches a remote run holds a connection"


def local_only(reason: LocalOnly) -> pytest.MarkDecorator:
    """Restrict a test to local runs."""
    return pytest.mark.local_only(reason)


class ScriptedServer:
    """A server and its clients; its only agent is the scripted agent requested last."""

    def __init__(self, server: "Serving", registry: AdapterRegistry) -> None:
        self.server = server
        self._registry = registry

    def client(self, body: str, **arguments: Any) -> RemoteMux:
        adapters, arguments = split_arguments(body, arguments)
        for adapter in adapters:
            self._registry.register(adapter)
        return RemoteMux(self.server.url, default_agent="scripted", **arguments)


@contextmanager
def scripted_server(directory: Path, **settings: Any) -> Iterator[ScriptedServer]:
    """Start a server in a directory, with these settings."""
    from tests.service.serving import serving  # needs an extra, which local runs do not

    registry = AdapterRegistry()
    limits = {"max_concurrent_runs": None, "roots": [Path(tempfile.gettempdir()), Path.cwd()], **settings}
    with serving(directory, registry, **limits) as server:
        yield ScriptedServer(server, registry)


@contextmanager
def remote_clients(shared: ScriptedServer, directory: Path) -> Iterator[MakeClient]:
    """Create clients of the shared server, or of a separate server if they set limits."""
    with ExitStack() as own:

        def make(body: str, **arguments: Any) -> RemoteMux:
            settings = {name: arguments.pop(name) for name in SERVICE_SETTINGS if name in arguments}
            if not settings:
                return shared.client(body, **arguments)
            return own.enter_context(scripted_server(directory, **settings)).client(body, **arguments)

        yield make
