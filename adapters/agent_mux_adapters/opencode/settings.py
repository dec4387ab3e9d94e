"""How the options of a run are said in the requests of `opencode serve`."""

import mimetypes
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_mux.adapter import CodecContext

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
