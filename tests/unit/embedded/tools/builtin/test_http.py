"""Tools behind HTTP, with a server on the loopback."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import httpx
import pytest

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.tools.builtin import HTTPTool
from agent_loop.tools.tool import Tool, ToolContext, kind_of

CONTEXT = ToolContext(call_id="c1", tool_name="remote")


@dataclass
class Service:
    """Answers every call alike, and remembers it."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    bodies: list[Any] = field(default_factory=list)
    heard: list[dict[str, str]] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def tool(self, **known: Any) -> HTTPTool:
        named = {"name": "remote", "description": "Far.", "parameters": {"type": "object"}}
        return HTTPTool(**{**named, "callback_url": self.url, "timeout": 20.0, **known})

    def call(self, backend: str = "asyncio", **known: Any) -> Any:
        return anyio.run(self.tool(**known).execute, {"a": 1}, CONTEXT, backend=backend)


@pytest.fixture
def service() -> Iterator[Service]:
    known = Service()
    known.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            known.heard.append({name.lower(): value for name, value in self.headers.items()})
            known.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            known.may_answer.wait()
            self.send_response(known.status)
            for name, value in {"content-length": str(len(known.body)), **known.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(known.body)
            except OSError:
                self.close_connection = True  # the tool had enough

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_address[1]}/call?key=secret"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield known
    known.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_call_is_a_post_of_name_and_arguments(service: Service, backend: str) -> None:
    service.body = b'{"output": "found"}'
    assert isinstance(service.tool(), Tool)
    assert kind_of(service.tool()) == "fetch"
    assert service.call(backend, headers={"Authorization": "Bearer s3"}) == "found"
    assert service.bodies == [{"name": "remote", "args": {"a": 1}, "call_id": "c1"}]
    assert service.heard[0]["authorization"] == "Bearer s3"
    assert service.heard[0]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "output"),
    [(b"plain", "plain"), (b'{"output": {"a": 1}}', '{"a": 1}'), (b'{"other": 1}', '{"other": 1}'), (b"[1]", "[1]"),
     (b"", ""), (b"\xff", "\ufffd"), (b"[" * 60_000, "[" * 60_000)],
)  # fmt: skip
def test_any_answer_is_an_output(service: Service, body: bytes, output: str) -> None:
    service.body = body
    assert service.call() == output


def test_an_error_of_the_service_is_an_error_of_the_tool(service: Service) -> None:
    service.body = b'{"output": "", "error": "no such thing"}'
    with pytest.raises(ToolError, match=r"^no such thing$"):
        service.call()


def test_a_bad_status_is_an_error_that_shows_no_secrets(service: Service) -> None:
    service.status, service.body = 500, b"x" * 1000
    with pytest.raises(ToolError) as error:
        service.call(headers={"Authorization": "Bearer s3"})
    message = str(error.value)
    assert "returned status 500: xxx" in message
    assert len(message) < 700
    assert "secret" not in message + repr(service.tool(headers={"Authorization": "Bearer s3"}))
    assert "s3" not in message + repr(service.tool(headers={"Authorization": "Bearer s3"}))


def test_redirects_are_not_followed(service: Service) -> None:
    service.status, service.headers = 307, {"location": service.url}
    with pytest.raises(ToolError, match="returned status 307; redirects are not followed"):
        service.call()
    assert len(service.bodies) == 1


def test_an_answer_is_at_most_64_kibibytes(service: Service) -> None:
    service.body = b"x" * 65_536
    assert service.call() == "x" * 65_536
    service.body += b"x"
    with pytest.raises(ToolError, match="larger than 65536 bytes"):
        service.call()


def test_a_compressed_answer_is_refused(service: Service) -> None:
    service.headers = {"content-encoding": "gzip"}
    with pytest.raises(ToolError, match="compressed"):
        service.call()
    assert service.heard[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_late_answer_is_an_error(service: Service, backend: str) -> None:
    service.may_answer.clear()
    with pytest.raises(ToolError, match=r"did not respond within 0\.2 seconds"):
        service.call(backend, timeout=0.2)


def test_a_service_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ToolError, match=r"http://127\.0\.0\.1:1 cannot be reached \(ConnectError\)"):
        Service(url="http://127.0.0.1:1/secret").call()


def test_a_client_of_ones_own_makes_the_calls_and_stays_open() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, content=b"mine")

    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), follow_redirects=True) as client:
            made = Service(url="https://example.invalid/x").tool(client=client)
            assert await made.execute({}, CONTEXT) == "mine"
            assert await made.execute({}, CONTEXT) == "mine"

    anyio.run(run)
    assert asked == ["https://example.invalid/x"] * 2


@pytest.mark.parametrize("url", ["ftp://a/b", "example.com", "http://", "http://a:x/", "file:///etc/passwd"])
def test_what_is_no_http_address_is_refused_at_construction(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not an http or https URL"):
        Service(url=url).tool()


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationError, match=r"agent-mux\[remote\]"):
        Service(url="http://a/").tool()
