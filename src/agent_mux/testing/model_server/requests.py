"""What was asked of the model: kept whole in memory, trimmed in the log file. Secrets are in neither."""

from collections.abc import Mapping
from typing import Any

import msgspec

SECRET_HEADERS = frozenset({
    "authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization",
})  # fmt: skip
REDACTED = "(redacted)"
LONGEST_TEXT = 1200  # in the log file; system prompts are long, and never what a reader looks for


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request the server got."""

    at: float
    """Seconds since the server started."""
    method: str
    path: str
    """With its query."""
    kind: str
    """`messages`, `responses`, `chat`, `generate`, `converse`, `aux` (one without tools), `count_tokens`, `models` or
    `unknown`."""
    step: int | None
    """Which step of the script answered; None: `aux`, `default` or no step at all."""
    headers: dict[str, str]
    """Names in lower case; secrets are redacted."""
    body: Any

    def log_line(self) -> bytes:
        """For the log file: tools by name, long texts cut."""
        body = _trim(self.body)
        if isinstance(body, dict) and isinstance(body.get("tools"), list):
            body["tools"] = [_tool_name(tool) for tool in body["tools"]]
        return msgspec.json.encode(msgspec.structs.replace(self, body=body)) + b"\n"


def redact(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that may be kept."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: REDACTED if name in SECRET_HEADERS else value for name, value in lowered.items()}


def _trim(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}...[+{len(value) - LONGEST_TEXT}]"
        case list():
            return [_trim(item) for item in value]
        case dict():
            return {key: _trim(item) for key, item in value.items()}
    return value


def _tool_name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    function = tool.get("function")
    declared = tool.get("functionDeclarations")
    if isinstance(declared, list):
        return [_tool_name(inner) for inner in declared]
    return _tool_name(function) if isinstance(function, dict) else tool.get("name") or tool.get("type")
