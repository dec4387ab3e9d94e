"""Our requests: parameters of the handshake, sessions and prompts; settings; attachments and MCP servers."""

import base64
import mimetypes
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import __version__
from agent_mux.sdk.adapter import SpawnArgs, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.facts import Note
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters._dialects.acp.wire import choice_of, option_of, values_of
from agent_mux_adapters._dialects.mcp_servers import write_acp_server
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

PROTOCOL_VERSION = 1
_CLIENT = {"name": "agent-mux", "title": "agent-mux", "version": __version__}
_EFFORT_ALTERNATIVES = {"max": ("max", "xhigh", "high")}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpRequest:
    """A request to send to the agent."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    """A session that the agent opened."""

    session_id: str
    result: Mapping[str, Any]
    """The result of the opening request: `modes`, `models`, `configOptions`."""

    @property
    def modes(self) -> list[str]:
        """The ids of the available modes."""
        return [text(mode.get("id")) for mode in rows(mapping(self.result.get("modes")).get("availableModes"))]

    @property
    def mode(self) -> str:
        """The id of the current mode."""
        return text(mapping(self.result.get("modes")).get("currentModeId"))

    def set_mode(self, mode_id: str) -> AcpRequest:
        """Return the request that switches to this mode."""
        return AcpRequest(method="session/set_mode", params={"sessionId": self.session_id, "modeId": mode_id})

    def set_option(self, config_id: str, value: str) -> AcpRequest:
        """Return the request that sets a configuration option."""
        params = {"sessionId": self.session_id, "configId": config_id, "value": value}
        return AcpRequest(method="session/set_config_option", params=params)

    def set_model(self, model: str) -> AcpRequest | Note | None:
        """Return the request that selects this model.

        None when it is selected already; a note when the agent offers no choice.
        """
        option = option_of(self.result, "model")
        if option is not None:
            value = _native_spelling(model, values_of(option))
            return None if value == choice_of(option) else self.set_option(text(option.get("id")), value)
        models = mapping(self.result.get("models"))
        if not models:
            return Note(f"the agent does not let a client choose the model: {model} is ignored", "warn")
        value = _native_spelling(model, [text(row.get("modelId")) for row in rows(models.get("availableModels"))])
        if value == models.get("currentModelId"):
            return None
        return AcpRequest(method="session/set_model", params={"sessionId": self.session_id, "modelId": value})

    def set_effort(self, level: str) -> AcpRequest | Note | None:
        """Return the request that selects this thinking effort.

        None when it is selected already; a note when the agent does not offer it.
        """
        option = option_of(self.result, "thought_level")
        wanted = [value for value in _EFFORT_ALTERNATIVES.get(level, (level,)) if value in values_of(option)]
        if not wanted:
            return Note(f"the agent offers no thinking effort {level!r}: ignored", "warn")
        return None if wanted[0] == choice_of(option) else self.set_option(text(option.get("id")), wanted[0])


def default_settings(context: CodecContext, opened: OpenedSession) -> Sequence[AcpRequest | Note]:
    """Return the requests for the model and the effort of the run.

    The model comes first, because the available efforts may depend on it.
    """
    model = opened.set_model(context.model) if context.model is not None else None
    effort = opened.set_effort(context.thinking_effort) if context.thinking_effort is not None else None
    return [one for one in (model, effort) if one is not None]


def mode_request(
    opened: OpenedSession, *, to: Sequence[str], out_of: Collection[str] | None = None
) -> AcpRequest | None:
    """Return the request for the first of these modes that is offered; None when no change is needed.

    With `out_of`, the mode changes only if the current one is among these.
    """
    mode = next((mode for mode in to if mode in opened.modes), None)
    is_due = opened.mode in out_of if out_of is not None else opened.mode != mode
    return opened.set_mode(mode) if mode is not None and is_due else None


def initialize_params(capabilities: Mapping[str, Any], *, asks_questions: bool) -> dict[str, Any]:
    """Return the parameters of `initialize`."""
    questions: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}} if asks_questions else {}
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {**capabilities, **questions},
        "clientInfo": _CLIENT,
    }


def session_params(context: CodecContext, servers: Sequence[Mapping[str, Any]], before: str | None) -> dict[str, Any]:
    """Return the parameters of `session/new`.

    With the session id `before`: of `session/load`, `session/resume` or `session/fork`.
    """
    params: dict[str, Any] = {"cwd": context.cwd, "mcpServers": list(servers)}
    return params if before is None else {"sessionId": before, **params}


def prompt_params(session_id: str, text_of_prompt: str, blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of `session/prompt`."""
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text_of_prompt}, *blocks]}


def _native_spelling(model: str, offered: Sequence[str]) -> str:
    """Return the agent's spelling of a model; some agents put the provider before the name."""
    if model in offered:
        return model
    return next((value for value in offered if value.endswith(f"/{model}")), model)


# -- attachments as content blocks, MCP servers as `mcpServers`

_BINARY = "application/octet-stream"


def acp_context(agent: str, options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec context for `Adapter.context`.

    Attachments are read here, because a codec reads no files.
    """
    return replace(default_context(agent, options, spawn), images=tuple(map(_url_of, options.attachments)))


def _url_of(attachment: Attachment) -> str:
    """Return an image as a `data:` URL, since the agent may not see our disk, and any other file as a link."""
    if attachment.base64 is not None:
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    if attachment.url is not None:
        return attachment.url
    path = Path(attachment.file_path or "")
    kind = attachment.mime_type or mimetypes.guess_type(path.name)[0] or _BINARY
    if not kind.startswith("image/"):
        return path.as_uri()
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def content_blocks(
    urls: Sequence[str], capabilities: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], tuple[Note, ...]]:
    """Return the content blocks for these attachments, and a note for each that the agent does not accept."""
    blocks, notes = [], []
    for url in urls:
        block = _block_of(url, takes_images=mapping(capabilities.get("promptCapabilities")).get("image") is True)
        if block is not None:
            blocks.append(block)
        else:
            notes.append(Note("the agent takes no images: an attachment is not sent", "warn"))
    return blocks, tuple(notes)


def _block_of(url: str, *, takes_images: bool) -> dict[str, Any] | None:
    head, comma, data = url.partition(";base64,")
    if not comma or not url.startswith("data:"):
        path = url if "://" in url else PurePath(url).as_uri()
        name = PurePath(path.partition("?")[0]).name or path
        kind = mimetypes.guess_type(name)[0]
        return {"type": "resource_link", "uri": path, "name": name, **({"mimeType": kind} if kind else {})}
    return {"type": "image", "mimeType": head.removeprefix("data:"), "data": data} if takes_images else None


def supported_servers(
    servers: Iterable[McpServer], capabilities: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], tuple[Note, ...]]:
    """Return the servers for `session/new` whose transport the agent supports, and a note for each other."""
    supported = mapping(capabilities.get("mcpCapabilities"))
    taken, notes = [], []
    for server in map(write_acp_server, servers):
        kind = server.get("type")
        if kind is None or supported.get(kind) is True:
            taken.append(server)
        else:
            notes.append(Note(f"the agent has no {kind} transport: MCP server {server['name']} is left out", "warn"))
    return taken, tuple(notes)
