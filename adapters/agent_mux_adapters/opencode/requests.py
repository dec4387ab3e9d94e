"""Requests to the server: lines for the bridge, the bodies of sessions and prompts, and what each request was about."""

import json
import mimetypes
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from agent_mux.sdk.codec import CodecContext, WriteStdin
from agent_mux_adapters._dialects.tolerant import mapping, text

Topic = Literal["abort", "create", "delete", "fork", "mcp", "open", "other", "permission", "prompt", "question"]
EVERYTHING_ASKS = [{"permission": "*", "pattern": "*", "action": "ask"}]
RULES = "rules"
"""Key in `CodecContext.settings` of the permission rules for named tools."""
_FILE = "application/octet-stream"


class SentRequest(msgspec.Struct, frozen=True, gc=False):
    """A request without a response yet."""

    topic: Topic
    path: str
    body: Any = None


class OpencodeRequests:
    """The requests of a run: numbered from 1, with what each was about."""

    def __init__(self) -> None:
        self._last_id = 0
        self._unanswered: dict[str, SentRequest] = {}

    def send(self, topic: Topic, method: str, path: str, body: Any = None) -> WriteStdin:
        """Return the line of a request; `take` finds it for the response."""
        self._last_id += 1
        self._unanswered[str(self._last_id)] = SentRequest(topic, path, body)
        line = {"id": self._last_id, "method": method, "path": path, **({} if body is None else {"body": body})}
        # An unpaired surrogate, which no parser accepts, becomes "?".
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return WriteStdin(data + b"\n")

    def observe(self, line: Any) -> SentRequest:
        """Note a request of another client in a transcript, so that its response is recognized."""
        fields = mapping(line)
        path = text(fields.get("path"))
        request = SentRequest(_topic_of(text(fields.get("method")), path), path, fields.get("body"))
        self._unanswered[json.dumps(fields.get("id"))] = request
        return request

    def take(self, request_id: Any) -> SentRequest | None:
        """Return the request of a response and forget it; None for an unknown request."""
        return self._unanswered.pop(json.dumps(request_id), None)


def session_in(path: str) -> str:
    """Return the session id in a path; empty if there is none."""
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


def create_body(context: CodecContext) -> dict[str, Any]:
    """Return the body of `POST /session`. A session's own permissions take precedence over all configuration."""
    asks_everything = context.approval_mode == "deny" or context.asks_everything
    return {"permission": [*EVERYTHING_ASKS, *context.settings.get(RULES, ())]} if asks_everything else {}


def prompt_body(context: CodecContext, text: str, *, with_files: bool, agent: str | None = None) -> dict[str, Any]:
    """Return the body of `POST /session/<id>/prompt_async`; continued sessions do not keep these settings."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    parts += [_file(place) for place in context.images] if with_files else []
    body: dict[str, Any] = {"parts": parts}
    if context.model is not None:
        provider, _, model = context.model.partition("/")
        body["model"] = {"providerID": provider, "modelID": model}
    if context.thinking_effort is not None:
        body["variant"] = context.thinking_effort
    if agent is not None:
        body["agent"] = agent
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
