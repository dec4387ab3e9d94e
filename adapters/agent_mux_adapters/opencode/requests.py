"""Requests to the server, as lines for the bridge, and what each of them was about."""

# MERGED DOC: """How the options of a run are said in the requests of `opencode serve`."""
import json
import mimetypes
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from agent_mux.adapter import CodecContext
from agent_mux.effects import WriteStdin
from agent_mux_adapters._dialects.tolerant import mapping, text

Topic = Literal["abort", "create", "delete", "fork", "mcp", "open", "other", "permission", "prompt", "question"]


class SentRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that has no answer yet."""

    topic: Topic
    path: str
    body: Any = None


class OpencodeRequests:
    """Numbers our requests from 1 and remembers what each one asked."""

    def __init__(self) -> None:
        self._last_id = 0
        self._unanswered: dict[str, SentRequest] = {}

    def send(self, topic: Topic, method: str, path: str, body: Any = None) -> WriteStdin:
        """A request; its answer is found with `take`."""
        self._last_id += 1
        self._unanswered[str(self._last_id)] = SentRequest(topic, path, body)
        line = {"id": self._last_id, "method": method, "path": path, **({} if body is None else {"body": body})}
        # A lone surrogate, which no parser takes, becomes "?".
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return WriteStdin(data + b"\n")

    def observe(self, line: Any) -> SentRequest:
        """A request of another client in a transcript: its answer is recognised as if it were ours."""
        fields = mapping(line)
        path = text(fields.get("path"))
        request = SentRequest(_topic_of(text(fields.get("method")), path), path, fields.get("body"))
        self._unanswered[json.dumps(fields.get("id"))] = request
        return request

    def take(self, request_id: Any) -> SentRequest | None:
        """The request that this answer belongs to; None when it is none of ours."""
        return self._unanswered.pop(json.dumps(request_id), None)


def session_in(path: str) -> str:
    """The session that a path is about."""
    parts = path.partition("?")[0].split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "session" else ""  # /session/<id>


def _topic_of(method: str, path: str) -> Topic:  # noqa: PLR0911  # a table
    parts = path.partition("?")[0].strip("/").split("/")
    match method, parts:
        case "POST", ["session"]:
            return "create"
        case "GET", ["session", _]:
            return "open"
        case "POST", ["session", _, "fork"]:
            return "fork"
        case "POST", ["session", _, "prompt_async"]:
            return "prompt"
        case "POST", ["session", _, "abort"]:
            return "abort"
        case "GET", ["mcp"]:
            return "mcp"
        case "POST", ["permission", *_]:
            return "permission"
        case "POST", ["question", *_]:
            return "question"
    return "other"


EVERYTHING_ASKS = [{"permission": "*", "pattern": "*", "action": "ask"}]
_FILE = "application/octet-stream"


def create_body(context: CodecContext) -> dict[str, Any]:
    """`POST /session`. What a session itself says of permissions comes after all configuration."""
    return {"permission": EVERYTHING_ASKS} if context.approval_mode == "deny" or context.asks_everything else {}


def prompt_body(context: CodecContext, text: str, *, with_files: bool) -> dict[str, Any]:
    """`POST /session/<id>/prompt_async`. A session that is continued has to be told everything again."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    parts += [_file(place) for place in context.images] if with_files else []
    body: dict[str, Any] = {"parts": parts}
    if context.model is not None:
        provider, _, model = context.model.partition("/")
        body["model"] = {"providerID": provider, "modelID": model}
    if context.thinking_effort is not None:
        body["variant"] = context.thinking_effort
    if context.system_prompt is not None and context.system_prompt_mode != "replace":
        body["system"] = context.system_prompt
    if context.output_schema is not None:
        body["format"] = {"type": "json_schema", "schema": context.output_schema}
    return body


def _file(url: str) -> dict[str, Any]:
    if url.startswith("data:"):
        kind = url.removeprefix("data:").partition(";")[0]
        return {"type": "file", "mime": kind, "filename": "attachment", "url": url}
    name = PurePath(unquote(urlsplit(url).path)).name
    return {"type": "file", "mime": mimetypes.guess_type(name)[0] or _FILE, "filename": name, "url": url}
