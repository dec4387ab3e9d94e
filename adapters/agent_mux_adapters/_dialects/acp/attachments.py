"""What goes along with a run, in ACP's shapes: attachments as content blocks, MCP servers as `mcpServers`."""

import base64
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace

from agent_mux.adapter import CodecContext, SpawnArgs, default_context
from agent_mux.facts import Note
from agent_mux.options import Attachment, McpServer, RunOptions
from agent_mux_adapters._dialects.tolerant import mapping

_BINARY = "application/octet-stream"


def acp_context(agent: str, options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """For `Adapter.context`: the attachments are made ready here, since a codec reads no files."""
    return replace(default_context(agent, options, spawn), images=tuple(map(_place_of, options.attachments)))


def _place_of(attachment: Attachment) -> str:
    """An image as a `data:` URL, since the agent need not see our disk; any other file as a link."""
    if attachment.base64 is not None:
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    if attachment.url is not None:
        return attachment.url
    path = Path(attachment.file_path or "")
    kind = attachment.mime_type or mimetypes.guess_type(path.name)[0] or _BINARY
    if not kind.startswith("image/"):
        return path.as_uri()
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def blocks_of(places: Sequence[str], capabilities: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[Note, ...]]:
    """The content blocks for these attachments, and a note for each that the agent takes in no form."""
    blocks, notes = [], []
    for place in places:
        block = _block_of(place, takes_images=mapping(capabilities.get("promptCapabilities")).get("image") is True)
        if block is not None:
            blocks.append(block)
        else:
            notes.append(Note("the agent takes no images: an attachment is not sent", "warn"))
    return blocks, tuple(notes)


def _block_of(place: str, *, takes_images: bool) -> dict[str, Any] | None:
    head, comma, data = place.partition(";base64,")
    if not comma or not place.startswith("data:"):
        path = place if "://" in place else PurePath(place).as_uri()
        name = PurePath(path.partition("?")[0]).name or path
        kind = mimetypes.guess_type(name)[0]
        return {"type": "resource_link", "uri": path, "name": name, **({"mimeType": kind} if kind else {})}
    return {"type": "image", "mimeType": head.removeprefix("data:"), "data": data} if takes_images else None


def _server_of(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        env = _pairs(server.env)
        return {"name": server.name, "command": server.command, "args": list(server.args), "env": env}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def servers_it_takes(
    servers: Iterable[McpServer], capabilities: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], tuple[Note, ...]]:
    """The servers whose transport the agent has, as `session/new` takes them, and a note for each other."""
    able = mapping(capabilities.get("mcpCapabilities"))
    taken, notes = [], []
    for server in map(_server_of, servers):
        kind = server.get("type")
        if kind is None or able.get(kind) is True:
            taken.append(server)
        else:
            notes.append(Note(f"the agent has no {kind} transport: MCP server {server['name']} is left out", "warn"))
    return taken, tuple(notes)
