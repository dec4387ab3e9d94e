"""An MCP server written with the official SDK, for tests: `python server.py stdio|streamable-http|sse [PORT_FILE]`.

Variables: PID_FILE (where it writes its process id), API_TOKEN (which it prints), AUTHORIZED_ONLY, EXIT, HANG.
"""

import asyncio
import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp.types import ToolAnnotations
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

server = MCPServer("test")
PIXEL = bytes.fromhex("89504e470d0a1a0a")
AUTHORIZATION = "Bearer second-token"


class Point(BaseModel):
    x: int
    y: int


@server.tool(annotations=ToolAnnotations(title="Echo it", read_only_hint=True))
def echo(text: str) -> str:
    """Repeat a text."""
    return f"echo: {text}"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def boom() -> str:
    """Always fail."""
    raise ValueError("boom failed")


@server.tool(structured_output=False)
def picture() -> list[object]:
    """Return a text and an image."""
    return ["a pixel", Image(data=PIXEL, format="png")]


@server.tool()
def point(x: int) -> Point:
    """Return structured content."""
    return Point(x=x, y=2)


@server.tool()
def variables() -> str:
    """Return the names of the environment's variables."""
    return " ".join(sorted(os.environ))


@server.tool()
async def wait(ctx: Context) -> str:
    """Report progress, then wait forever."""
    await ctx.report_progress(1, 2, "half done")
    await asyncio.sleep(3600)
    return "done"


@server.tool()
def die() -> str:
    """End the server during the call."""
    os._exit(3)


def serve_http(transport: str, port_file: str) -> None:
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()

    async def guarded(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        """Answer 401 to requests without the token, if one is required."""
        is_guarded = scope["type"] == "http" and os.environ.get("AUTHORIZED_ONLY")
        if is_guarded and Request(scope).headers.get("authorization") != AUTHORIZATION:
            await Response("no", status_code=401)(scope, receive, send)
        else:
            await app(scope, receive, send)

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    staged = Path(port_file + ".new")
    staged.write_text(str(listener.getsockname()[1]))
    staged.rename(port_file)
    uvicorn.Server(uvicorn.Config(guarded, log_level="error")).run([listener])


if __name__ == "__main__":
    if "PID_FILE" in os.environ:
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
    if "API_TOKEN" in os.environ:
        sys.stderr.write(f"refused token {os.environ['API_TOKEN']}\n")
        sys.stderr.flush()
    if "EXIT" in os.environ:
        sys.exit(2)
    if "HANG" in os.environ:
        sys.stdin.read()
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        serve_http(sys.argv[1], sys.argv[2])
