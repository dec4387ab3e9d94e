"""The loopback server and the bridge, as MCP clients and strangers reach them."""

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from agent_mux.loopback.callbacks import RunCallbacks
from agent_mux.loopback.hooks import FunctionHooks
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, HookDecision
from agent_mux.sdk.options import McpServer
from agent_mux_adapters.claude.hooks import HOOKS

pytestmark = pytest.mark.anyio
BOUND = 60
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 2, "b": 3}}}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {
    "content": [{"type": "text", "text": "5"}], "isError": False, "structuredContent": {"result": 5},
}}  # fmt: skip


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@asynccontextmanager
async def served(*tools: Callable[..., Any], **more: Any) -> AsyncIterator[RunCallbacks]:
    callbacks = RunCallbacks([add, *tools], **more)
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(callbacks.serve)
            yield callbacks
            tasks.cancel_scope.cancel()


def address(server: McpServer) -> tuple[str, int]:
    host, _, port = str(server.url).removeprefix("http://").partition("/")[0].partition(":")
    return host, int(port)


async def exchange(server: McpServer, request: bytes) -> bytes:
    """Send bytes to the server and return all that it answers until it closes the connection."""

    def send() -> bytes:
        with socket.create_connection(address(server), timeout=BOUND) as client:
            client.sendall(request)
            answer = b""
            while data := client.recv(65536):
                answer += data
            return answer

    return await to_thread.run_sync(send)


def post(server: McpServer, content: Any, *, body: bytes | None = None, path: str = "/mcp", **headers: str) -> bytes:
    sent = json.dumps(content).encode() if body is None else body
    lines = {"Content-Length": str(len(sent)), "Connection": "close", **server.headers, **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items() if value)
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + sent


def body_of(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def test_mcp_client_lists_and_calls_over_http_and_stdio() -> None:
    async with served() as callbacks:
        http = callbacks.mcp_server("streamable-http")
        for message, key in (("initialize", "serverInfo"), ("tools/list", "tools"), ("ping", None)):
            result = body_of(await exchange(http, post(http, {"jsonrpc": "2.0", "id": 7, "method": message})))["result"]
            assert key is None or key in result
        assert body_of(await exchange(http, post(http, CALL))) == RESULT
        assert (await through_bridge(callbacks, CALL, 1)) == [RESULT]


async def through_bridge(callbacks: RunCallbacks, message: Any, count: int) -> list[Any]:
    server = callbacks.mcp_server("stdio")
    assert callbacks.token not in " ".join((str(server.command), *server.args))

    def talk() -> list[Any]:
        with subprocess.Popen(
            [str(server.command), *server.args],
            env={**os.environ, **server.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as bridge:
            assert bridge.stdin is not None
            assert bridge.stdout is not None
            bridge.stdin.write(b"\n" + json.dumps(message).encode() + b"\n")
            bridge.stdin.flush()
            return [json.loads(bridge.stdout.readline()) for _ in range(count)]

    return await to_thread.run_sync(talk)


async def test_bridge_reports_that_the_run_is_over() -> None:
    async with served() as callbacks:
        pass
    (answer,) = await through_bridge(callbacks, CALL, 1)
    assert "the tools of this run cannot be reached" in answer["error"]["message"]


async def test_chunked_bodies_and_pipelined_requests_are_answered() -> None:
    async with served() as callbacks:
        server = callbacks.mcp_server("streamable-http")
        text = json.dumps(CALL).encode()
        chunks = b"5;x=y\r\n" + text[:5] + b"\r\n%x\r\n" % (len(text) - 5) + text[5:] + b"\r\n0\r\nTrailer: 1\r\n\r\n"
        chunked = post(server, None, body=chunks, Content_Length="", Transfer_Encoding="chunked", Connection="")
        answer = await exchange(server, chunked + post(server, [CALL, CALL]))
        first, _, second = answer.partition(b"HTTP/1.1 200 OK")[2].partition(b"HTTP/1.1 200 OK")
        assert body_of(first) == RESULT
        assert body_of(second) == [RESULT, RESULT]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Authorization": "Bearer wrong"}, b"401"),
        ({"Authorization": ""}, b"401"),
        ({"Authorization": "Bearer ü"}, b"401"),
        ({"Origin": "http://localhost"}, b"403"),
        ({"Content_Length": "x"}, b"400"),
        ({"Content_Length": "-1"}, b"413"),
        ({"Content_Length": str(1 << 40)}, b"413"),
        ({"X": "x" * 100_000}, b"431"),
        ({"Expect": "100-continue"}, b"100"),
    ],
)
async def test_requests_of_strangers_and_malformed_ones_are_refused(change: dict[str, str], status: bytes) -> None:
    async with served() as callbacks:
        server = callbacks.mcp_server("streamable-http")
        answer = await exchange(server, post(server, CALL, **change))
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert body_of(await exchange(server, post(server, CALL))) == RESULT


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        (b"GET /mcp HTTP/1.1", b"", b"405"),
        (b"POST /other HTTP/1.1", b"{}", b"404"),
        (b"POST /mcp HTTP/1.1", b"{", b"400"),
        (b"nonsense", b"", b"400"),
    ],
)
async def test_other_requests_get_their_status(request_line: bytes, body: bytes, status: bytes) -> None:
    async with served() as callbacks:
        server = callbacks.mcp_server("streamable-http")
        request = post(server, None, body=body).partition(b"\r\n")[2]
        answer = await exchange(server, request_line + b"\r\n" + request)
        assert answer.startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "gone"}}, -32602),
        ([], -32600),
        ("text", -32600),
    ],
)
async def test_messages_without_a_tool(message: Any, expected: int | None) -> None:
    async with served() as callbacks:
        server = callbacks.mcp_server("streamable-http")
        answer = await exchange(server, post(server, message))
        if expected is None:
            assert answer.startswith(b"HTTP/1.1 202 Accepted")
        else:
            assert body_of(answer)["error"]["code"] == expected


@pytest.mark.slow
@pytest.mark.parametrize("is_served", [True, False])
async def test_port_is_released_after_the_run_and_with_a_plan_that_never_ran(is_served: bool) -> None:
    if is_served:
        async with served() as callbacks:
            where = address(callbacks.mcp_server("streamable-http"))
    else:
        callbacks = RunCallbacks([add])
        where = address(callbacks.mcp_server("streamable-http"))
        del callbacks
        gc.collect()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, timeout=BOUND)


def test_bridge_needs_the_standard_library_only() -> None:
    source = McpServer("x", command=sys.executable)
    server = RunCallbacks([add]).mcp_server("stdio")
    assert server.command == source.command
    program = "import runpy, sys; runpy.run_path(sys.argv[1]); print('agent_mux' in sys.modules)"
    words = [sys.executable, "-I", "-c", program, server.args[-1]]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=BOUND)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("value", "is_wrapped"), [([1], True), (None, True), (5, True), ({"a": 1}, False), ("x", False)]
)
async def test_answer_that_is_json_but_no_object_has_structured_content(value: Any, is_wrapped: bool) -> None:
    def tell() -> Any:
        return value

    async with served(tell) as callbacks:
        call = {**CALL, "params": {"name": "tell", "arguments": {}}}
        server = callbacks.mcp_server("streamable-http")
        answer = body_of(await exchange(server, post(server, call)))
    assert answer["result"].get("structuredContent") == ({"result": value} if is_wrapped else None)


@pytest.mark.parametrize("hook_type", [["stop"], {}, 5, None, "unknown"])
async def test_hook_of_an_unknown_type_is_refused_and_the_server_continues(hook_type: Any) -> None:
    hooks = FunctionHooks({"stop": lambda _: None}, frozenset(), is_native=False)
    async with served(hooks=hooks, native=HOOKS) as callbacks:
        server = callbacks.mcp_server("streamable-http")
        answer = body_of(await exchange(server, post(server, {"type": hook_type, "input": {}}, path="/hooks")))
        assert answer == {"stderr": f"no hook {hook_type} in this run", "exitCode": 1}
        assert body_of(await exchange(server, post(server, CALL))) == RESULT


@pytest.mark.parametrize(("hook_type", "is_accepted"), [("prompt_submit", True), ("stop", False)])
async def test_context_that_the_agent_cannot_take_is_a_warning(hook_type: Any, is_accepted: bool) -> None:
    warnings: list[str] = []
    hooks = FunctionHooks({hook_type: lambda _: HookDecision(context="late")}, GUARDED_HOOK_TYPES, is_native=True)
    async with served(hooks=hooks, native=HOOKS) as callbacks:
        callbacks.report_to(warnings.append)
        server = callbacks.mcp_server("streamable-http")
        answer = body_of(await exchange(server, post(server, {"type": hook_type, "input": {}}, path="/hooks")))
    assert ("late" in answer["stdout"]) == is_accepted
    message = f"the hook {hook_type} added context, which claude cannot accept there"
    assert warnings == ([] if is_accepted else [message])
