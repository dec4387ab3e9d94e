"""Requests to the server, as lines for the bridge, and what each of them was about."""

import json
from typing import Any, Literal

import msgspec

from agent_mux.effects import WriteStdin
from agent_mux_adapters._dialects.tolerant import mapping, text

Topic = Literal["abort", "create", "delete", "fork", "mcp", "open", "other", "permission", "prompt", "question"]


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request that has no answer yet."""

    topic: Topic
    path: str
    body: Any = None


class Client:
    """Numbers our requests from 1 and remembers what each one asked."""

    def __init__(self) -> None:
        self._last_id = 0
        self._waiting: dict[str, Asked] = {}

    def ask(self, topic: Topic, method: str, path: str, body: Any = None) -> WriteStdin:
        """A request; its answer is found with `take`."""
        self._last_id += 1
        self._waiting[str(self._last_id)] = Asked(topic, path, body)
        line = {"id": self._last_id, "method": method, "path": path, **({} if body is None else {"body": body})}
        # A lone surrogate, which no parser takes, becomes "?".
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return WriteStdin(data + b"\n")

    def overhear(self, line: Any) -> Asked:
        """A request of another client in a transcript: its answer is recognised as if it were ours."""
        fields = mapping(line)
        path = text(fields.get("path"))
        asked = Asked(_topic_of(text(fields.get("method")), path), path, fields.get("body"))
        self._waiting[json.dumps(fields.get("id"))] = asked
        return asked

    def take(self, request_id: Any) -> Asked | None:
        """The request that this answer belongs to; None when it is none of ours."""
        return self._waiting.pop(json.dumps(request_id), None)


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
