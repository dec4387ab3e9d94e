"""The same tests for runs of this process and for runs of a service: what a consumer holds does not tell them apart.

A module that is marked `everywhere` has each of its tests that makes a client played twice. A test that cannot be is
marked `here_alone`, with one of the reasons below.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tests.process.scripted import MakeClient, split_arguments
from tests.service.serving import Serving, serving

from agent_mux import RemoteMux
from agent_mux.sdk.registry import AdapterRegistry

PLACES = ("local", "remote")
OF_A_SERVICE = ("max_concurrent_runs", "max_concurrent_runs_per_agent", "queue_limit")
"""Arguments of a client that are settings of a service."""


class HereAlone(Enum):
    """Why a test is about runs of this process and nothing else."""

    INSIDE = "it looks at the inside of the runner, the reaper or the queue"
    JOURNAL = "a service always keeps its recordings, where it keeps them"
    OWNER = "whose run it is, is said by the token"
    ENVIRONMENT = "an observer adds to the agent's environment, which is that of the service"
    NOTED = "the recording of a service knows nothing of what its client notes"
    SETTINGS = "it is a setting of the service, and looked at when that is started"
    CONNECTIONS = "whoever watches a run of a service has a connection"


def here_alone(reason: HereAlone) -> pytest.MarkDecorator:
    """This test is played with runs of this process only."""
    return pytest.mark.here_alone(reason)


class Served:
    """Makes clients of one server, whose only agent is the scripted one that was wanted last."""

    def __init__(self, server: Serving, registry: AdapterRegistry) -> None:
        self.server = server
        self._registry = registry

    def client(self, body: str, **arguments: Any) -> RemoteMux:
        adapter, arguments = split_arguments(body, arguments)
        self._registry.register(adapter)
        return RemoteMux(self.server.url, default_agent="scripted", **arguments)


@contextmanager
def served(directory: Path, **chosen: Any) -> Iterator[Served]:
    """A server of a directory. `chosen`: its settings."""
    registry = AdapterRegistry()
    limits = {"max_concurrent_runs": None, "roots": [Path(tempfile.gettempdir()), Path.cwd()], **chosen}
    with serving(directory, registry, **limits) as server:
        yield Served(server, registry)


@contextmanager
def clients_of(shared: Served, directory: Path) -> Iterator[MakeClient]:
    """Makes clients of a shared server, and of one of their own where they ask for limits."""
    with ExitStack() as own:

        def make(body: str, **arguments: Any) -> RemoteMux:
            chosen = {name: arguments.pop(name) for name in OF_A_SERVICE if name in arguments}
            if not chosen:
                return shared.client(body, **arguments)
            return own.enter_context(served(directory, **chosen)).client(body, **arguments)

        yield make
