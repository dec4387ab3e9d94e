"""A service on the loopback interface that records its requests, and documents that describe it."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio

from agent_loop.openapi import OpenApiConfig, OpenApiTool, OperationFilter, openapi_tools_from_text
from agent_loop.tools.tool import ToolContext, ToolResult

CONTEXT = ToolContext(call_id="1", tool_name="tool")


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    status: int = 200
    body: bytes = b'{"ok": true}'
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


class Service:
    """Answers every request with `reply`, which may be a function of the request."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reply: Reply | Callable[[Request], Reply] = Reply()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                service.requests.append(request)
                reply = service.reply(request) if callable(service.reply) else service.reply
                self.send_response(reply.status)
                for name, value in {**reply.headers, "content-length": str(len(reply.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815  # names of the server

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def last(self) -> Request:
        return self.requests[-1]


def document(paths: dict[str, Any], *, version: str = "3.1.0", **fields: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "Test", "version": "1"}, "paths": paths, **fields}


def operation(operation_id: str, **fields: Any) -> dict[str, Any]:
    return {"operationId": operation_id, "responses": {"200": {"description": "OK"}}, **fields}


def parameter(name: str, location: str, schema: Any = None, **fields: Any) -> dict[str, Any]:
    required = {"required": True} if location == "path" else {}
    return {"name": name, "in": location, "schema": schema or {"type": "string"}, **required, **fields}


def tools_of(
    content: dict[str, Any], *, chosen: OperationFilter | None = None, **settings: Any
) -> dict[str, OpenApiTool]:
    config = OpenApiConfig(**{"allow_private": True, **settings})
    return {tool.name: tool for tool in openapi_tools_from_text(json.dumps(content), config, chosen)}


def execute(tool: OpenApiTool, **arguments: Any) -> ToolResult:
    async def bounded() -> ToolResult:
        with anyio.fail_after(60):
            found = await tool.execute(arguments, CONTEXT)
            assert isinstance(found, ToolResult)
            return found

    return anyio.run(bounded)
