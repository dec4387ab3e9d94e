"""The MCP test server, used as by an agent."""

import json
import subprocess
import sys
from typing import Any

import pytest

from agent_mux_testing import mcp_echo
from agent_mux_testing.mcp_echo import answer

BOUND = 60.0


def call(name: str, **arguments: Any) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    response = answer(request)
    assert response is not None
    return response["result"]


def test_echo_gives_the_text_back_and_boom_fails() -> None:
    assert call("echo", text="ping") == {"content": [{"type": "text", "text": "echo: ping"}], "isError": False}
    assert call("boom") == {"content": [{"type": "text", "text": "boom failed"}], "isError": True}


def test_notifications_get_no_answer() -> None:
    assert answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None


@pytest.mark.parametrize(("method", "key"), [("tools/list", "result"), ("ping", "result"), ("nope", "error")])
def test_requests_are_answered(method: str, key: str) -> None:
    response = answer({"jsonrpc": "2.0", "id": 0, "method": method})
    assert response is not None
    assert (response["id"], key in response) == (0, True)


def test_it_runs_as_a_bare_script() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
    done = subprocess.run(
        [sys.executable, "-I", mcp_echo.__file__],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-03-26"
