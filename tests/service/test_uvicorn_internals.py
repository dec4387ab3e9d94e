"""The parts of uvicorn that are no public interface of it and that the service builds on.

`service.server` and `service.connections` subclass uvicorn's server and protocols. A method that uvicorn renames would
be overridden no more, and a limit on connections would end without an error. That is why `pyproject.toml` has an upper
bound, and why these tests have to pass before it is raised.
"""

import ast
import asyncio
import inspect
import textwrap
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from starlette.applications import Starlette
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

OVERRIDDEN = {
    Server: {
        "run": ["sockets"],
        "startup": ["sockets"],
        "shutdown": ["sockets"],
        "handle_exit": ["sig", "frame"],
    },
    H11Protocol: {
        "connection_made": ["transport"],
        "connection_lost": ["exc"],
        "data_received": ["data"],
        "on_response_complete": [],
        "send_400_response": ["msg"],
    },
    WebSocketsSansIOProtocol: {"handle_ping": [], "keepalive_timeout": [], "shutdown": []},
}
"""Methods that the service overrides, with their parameters."""
ATTRIBUTES = {
    Server: ["server_state", "should_exit", "force_exit", "started", "on_tick"],
    ServerState: ["connections"],
    H11Protocol: ["connections", "conn", "cycle", "loop", "server_state", "transport"],
    WebSocketsSansIOProtocol: ["close_sent", "conn", "handshake_complete", "loop", "transport", "writable"],
}
"""Attributes of instances that the service reads or sets."""
CALLED_BY_UVICORN = {
    ("handle_ping", WebSocketsSansIOProtocol): "handle_events",
    ("send_400_response", H11Protocol): "handle_events",
    ("on_response_complete", H11Protocol): "handle_events",
    ("handle_exit", Server): "capture_signals",
}
"""Methods that only have an effect if uvicorn calls them -> the method that refers to them."""


def advice(what: str) -> str:
    return (
        f"uvicorn {version('uvicorn')} has no {what} as the service expects it. Adapt agent_mux/service/connections.py "
        "and server.py to this version, then this test, and only then raise the upper bound in pyproject.toml."
    )


@pytest.fixture
def instances() -> Iterator[dict[type, Any]]:
    loop = asyncio.new_event_loop()
    config, state = Config(Starlette(), http=H11Protocol, ws=WebSocketsSansIOProtocol, log_config=None), ServerState()
    config.load()
    yield {
        Server: Server(config),
        ServerState: state,
        H11Protocol: H11Protocol(config, state, {}, _loop=loop),
        WebSocketsSansIOProtocol: WebSocketsSansIOProtocol(config, state, {}, _loop=loop),
    }
    loop.close()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OVERRIDDEN.items() for name in names])
def test_overridden_methods_exist_with_their_parameters(kind: type, name: str) -> None:
    # From the source: sse-starlette, which the MCP library imports, replaces a method in the running process.
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    methods = {item.name: item for item in body.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in methods, advice(f"{kind.__name__}.{name}()")
    parameters = [argument.arg for argument in methods[name].args.args[1:]]
    assert parameters == OVERRIDDEN[kind][name], advice(f"{kind.__name__}.{name}()")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in ATTRIBUTES.items() for name in names])
def test_attributes_exist(instances: dict[type, Any], kind: type, name: str) -> None:
    assert hasattr(instances[kind], name), advice(f"{kind.__name__}.{name}")


def test_a_request_has_a_flag_for_the_end_of_its_response() -> None:
    assert "self.response_complete = " in inspect.getsource(RequestResponseCycle), advice("cycle.response_complete")


@pytest.mark.parametrize(("name", "kind"), CALLED_BY_UVICORN)
def test_uvicorn_calls_the_overridden_methods(name: str, kind: type) -> None:
    caller = CALLED_BY_UVICORN[name, kind]
    assert f"self.{name}" in inspect.getsource(getattr(kind, caller)), advice(f"call of {kind.__name__}.{name}()")


def test_a_missed_pong_calls_keepalive_timeout() -> None:
    source = inspect.getsource(WebSocketsSansIOProtocol)
    assert "call_later(self.ping_timeout, self.keepalive_timeout" in source, advice("timer for keepalive_timeout()")


def test_a_failed_startup_raises_system_exit() -> None:
    assert "sys.exit(STARTUP_FAILURE)" in inspect.getsource(Server.startup), advice("SystemExit in Server.startup()")


def test_the_installed_version_is_within_tested_bounds() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = [Requirement(one) for one in project["optional-dependencies"]["service"]]
    (bound,) = (one.specifier for one in declared if one.name == "uvicorn")
    assert any(one.operator == "<" for one in bound), "uvicorn has no upper bound in pyproject.toml"
    assert bound.contains(version("uvicorn")), advice(f"place in {bound}")
