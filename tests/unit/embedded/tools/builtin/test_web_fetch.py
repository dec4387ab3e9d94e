"""`web_fetch` against a server on the loopback interface."""

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import pytest

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError
from agent_loop.tools import pinned_http
from agent_loop.tools.builtin import web_fetch
from agent_loop.tools.builtin.html_text import text_of_html
from agent_loop.tools.builtin.web_fetch import MAX_SHOWN, WebFetchTool
from agent_loop.tools.tool import ToolContext, ToolResult, kind_of, risk_of

Reply = tuple[int, dict[str, str], bytes]
CONTEXT = ToolContext(call_id="1", tool_name="web_fetch")


class Site:
    """Pages by path; a page may be a function of the request's headers."""

    def __init__(self) -> None:
        self.pages: dict[str, Reply | Callable[[Any], Reply]] = {}
        self.requests: list[tuple[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append((self.path, self.headers["host"]))
                page = site.pages[self.path]
                status, headers, body = page(self) if callable(page) else page
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def put(self, path: str, body: bytes | str, kind: str = "text/plain", status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else body.encode()
        self.pages[path] = (status, {"content-type": kind, **headers}, data)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def fetch(url: str, offset: int = 0, **settings: Any) -> str:
    tool = WebFetchTool(**{"allow_private": True, **settings})

    async def bounded() -> str:
        with anyio.fail_after(60):
            found = await tool.execute({"url": url, "offset": offset}, CONTEXT)
        assert isinstance(found, ToolResult)
        return found.text

    return anyio.run(bounded)


def test_tool_is_a_fetch_that_needs_approval() -> None:
    assert (kind_of(WebFetchTool()), risk_of(WebFetchTool())) == ("fetch", "medium")


def test_page_is_text_with_its_url(site: Site) -> None:
    site.put("/a", "<title>T</title><h1>Head</h1><p>One <a href='/b'>link</a>.</p>", "text/html; charset=utf-8")
    assert fetch(site.url("/a")) == f"[{site.url('/a')}]\nT\n\n# Head\n\nOne link ({site.url('/b')})."
    assert site.requests == [("/a", f"127.0.0.1:{site.port}")]


def test_name_of_the_host_is_sent_and_the_checked_address_is_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int, **_: Any) -> list[Any]:
        assert host == "docs.example"
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr(anyio, "getaddrinfo", resolve)
    site.put("/", "here")
    assert fetch(site.url("/", "docs.example")).endswith("\nhere")
    assert site.requests == [("/", f"docs.example:{site.port}")]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::ffff:127.0.0.1]",
     "[64:ff9b::7f00:1]", "[fe80::1]", "[2002:7f00:1::]", "2130706433", "224.0.0.1"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(site: Site, host: str) -> None:
    with pytest.raises(ToolError, match=r"is not public; it is refused|cannot be found"):
        fetch(site.url("/", host), allow_private=False)
    assert site.requests == []


def test_redirect_to_an_address_that_is_not_public_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_http, "is_public", lambda address: address == "127.0.0.1")
    site.put("/", b"", status=302, location=f"http://127.0.0.2:{site.port}/secret")
    with pytest.raises(ToolError, match=r"127\.0\.0\.2, which is not public"):
        fetch(site.url(), allow_private=False)
    assert [path for path, _ in site.requests] == ["/"]


@pytest.mark.slow
def test_redirects_are_followed_up_to_a_limit(site: Site) -> None:
    site.put("/old", b"", status=301, location="new")
    site.put("/new", "moved")
    assert fetch(site.url("/old")) == f"[{site.url('/new')}]\nmoved"
    site.put("/loop", b"", status=302, location="/loop")
    with pytest.raises(ToolError, match="more than 5 redirects"):
        fetch(site.url("/loop"))
    site.put("/file", b"", status=302, location="file:///etc/passwd")
    with pytest.raises(InvalidArgumentsError, match="is not an http or https URL"):
        fetch(site.url("/file"))


def test_long_page_is_read_in_parts(site: Site) -> None:
    site.put("/", "x" * MAX_SHOWN + "rest")
    assert f"[4 more characters; fetch it again with offset={MAX_SHOWN}]" in fetch(site.url())
    assert fetch(site.url(), MAX_SHOWN).endswith("\nrest")


def test_size_is_limited(site: Site) -> None:
    site.put("/", "x" * 100_000)
    assert fetch(site.url(), max_bytes=1000) == f"[{site.url()}]\n{'x' * 1000}\n[the page was cut at the size limit]"


def test_time_is_limited(site: Site) -> None:
    ended = threading.Event()

    def wait(_: Any) -> Reply:
        ended.wait(60)
        return 200, {}, b""

    site.pages["/"] = wait
    with pytest.raises(ToolError, match=r"did not respond within 0\.2 seconds"):
        fetch(site.url(), timeout=0.2)
    ended.set()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ((404, {"content-type": "text/plain"}, b"no"), "returned status 404"),
        ((200, {"content-type": "image/png"}, b"\x89PNG"), "has the content type 'image/png', which is not text"),
        ((200, {"content-type": "text/plain", "content-encoding": "gzip"}, b"x"), "is compressed"),
    ],
)
def test_other_responses_are_errors(site: Site, page: Reply, message: str) -> None:
    site.pages["/"] = page
    with pytest.raises(ToolError, match=message):
        fetch(site.url())


def test_without_a_network_the_error_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # without listen(): connections are refused, and nobody else gets the port
        with pytest.raises(ToolError, match=r"127\.0\.0\.1 cannot be reached \(ConnectError\); is there a network\?"):
            fetch(f"http://127.0.0.1:{unheard.getsockname()[1]}/")

    async def fail(*_: Any, **__: Any) -> list[Any]:
        raise OSError("no such name")

    monkeypatch.setattr(anyio, "getaddrinfo", fail)
    with pytest.raises(ToolError, match=r"the address of 'docs\.example' cannot be found; is there a network"):
        fetch("http://docs.example/")


@pytest.mark.parametrize(
    "url", ["ftp://a/b", "file:///etc/passwd", "http://", "nonsense", "http://a:x/", "http://a/\n"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="is not an http or https URL"):
        fetch(url)
    with pytest.raises(InvalidArgumentsError, match="sends no credentials"):
        fetch("http://user:secret@a/")


def test_without_httpx_the_tool_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_fetch, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match="needs httpx; try: pip install"):
        WebFetchTool()


def test_html_keeps_structure_and_drops_programs() -> None:
    html = """<html><head><style>x{}</style><script>var a = "<p>no</p>";</script></head><body>
      <h2>Title</h2><ul><li>one <b>two</b></li><li>three</li></ul>
      <pre>def f():
    return 1</pre>
      <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
      <img alt="diagram"><a href="#top">top</a> &amp; &lt;end&gt;</body>"""
    text = text_of_html(html, "http://a/")
    assert "## Title\n\n- one two\n- three\n" in text
    assert "def f():\n    return 1" in text
    assert "a | b" in text
    assert "1 | 2" in text
    assert "[image: diagram]top & <end>" in text
    assert "no" not in text.replace("not", "")
    assert "x{}" not in text


@pytest.mark.parametrize(
    "html", ["", "<", "<p", "</a></pre></div>", "<a href='http://['>x</a>", "<!doctype", "&#x110000;"]
)
def test_broken_html_is_no_error(html: str) -> None:
    text_of_html(html, "http://a/")
