"""Requests to the scripted model: the step of the script that answers each, and a record of them without secrets.

Requests are kept whole in memory and shortened in the log file.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from agent_mux_testing.model_server.script import Script, ScriptStep, fill_in

SECRET_HEADERS = frozenset({
    "authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization",
})  # fmt: skip
REDACTED = "(redacted)"
MAX_LOGGED_TEXT = 1200  # characters of a text in the log file; system prompts are long and rarely of interest


class RecordedRequest(msgspec.Struct, frozen=True):
    """One request that the server received."""

    at: float
    """Seconds since the server started."""
    method: str
    path: str
    """The path with its query."""
    kind: str
    """`messages`, `responses`, `chat`, `generate`, `converse`, `aux` (one without tools), `count_tokens`, `models` or
    `unknown`."""
    step: int | None
    """Index of the step that answered; None for `aux`, `default` or no step."""
    headers: dict[str, str]
    """Headers with names in lower case and redacted secrets."""
    body: Any

    def log_line(self) -> bytes:
        """Return the line for the log file, with tools by name and long texts cut."""
        body = _trim(self.body)
        if isinstance(body, dict) and isinstance(body.get("tools"), list):
            body["tools"] = [_tool_name(tool) for tool in body["tools"]]
        return msgspec.json.encode(msgspec.structs.replace(self, body=body)) + b"\n"


def redact(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers in lower case with redacted secrets."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: REDACTED if name in SECRET_HEADERS else value for name, value in lowered.items()}


def _trim(value: Any) -> Any:
    match value:
        case str() if len(value) > MAX_LOGGED_TEXT:
            return f"{value[:MAX_LOGGED_TEXT]}...[+{len(value) - MAX_LOGGED_TEXT}]"
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


# -- matching

RECENT_MESSAGES = 3  # a tool result, the message with it, and the call
OPENING_MESSAGES = 2  # a prompt may follow a message of context


@dataclass(frozen=True, slots=True)
class RequestContent:
    """The content of a request as JSON texts, in which the patterns of steps are searched."""

    recent: str
    opening: str
    whole: str
    model: str
    has_tools: bool

    @classmethod
    def of(cls, body: Any, model: str | None = None) -> "RequestContent":
        """Read the body of a request of any API; any field may be missing. `model` is set when the path names it."""
        request = body if isinstance(body, Mapping) else {}
        model = model or str(request.get("model") or "")
        messages = request.get("messages") or request.get("input") or request.get("contents") or []
        messages = messages if isinstance(messages, list) else [{"role": "user", "content": messages}]
        from_user = [message for message in messages if isinstance(message, Mapping) and message.get("role") == "user"]
        return cls(
            recent=json.dumps({"m": messages[-RECENT_MESSAGES:], "model": model}),
            opening=json.dumps(from_user[:OPENING_MESSAGES]),
            whole=json.dumps(messages),
            model=model,
            has_tools=bool(request.get("tools")),
        )


@dataclass(frozen=True, slots=True)
class ChosenStep:
    """The step that answers one request."""

    step: ScriptStep
    index: int | None
    """The index in `Script.steps`; None for `aux` or `default`."""


class AnswerSource(Protocol):
    """What chooses the answer to each request: a script (`Matcher`), or a model that reacts to results."""

    @property
    def unused(self) -> tuple[ScriptStep, ...]:
        """The steps that have answered no request yet."""

    def choose(self, content: RequestContent, *, aux: bool) -> ChosenStep:
        """Return the answer to a request; `aux` for one without tools."""


class Matcher:
    """Chooses the steps of a script in order, each as often as its `repeat` allows."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._used = [0] * len(script.steps)

    def choose(self, content: RequestContent, *, aux: bool) -> ChosenStep:
        """Return the first matching step that is not used up, else `aux` or `default`."""
        for index, step in enumerate(self._script.steps):
            if step.is_aux == aux and not self._is_used_up(index) and _matches(step, content):
                self._used[index] += 1
                return ChosenStep(fill_in(step, content.whole), index)
        fallback = self._script.aux if aux else self._script.default
        return ChosenStep(fill_in(fallback, content.whole), None)

    @property
    def unused(self) -> tuple[ScriptStep, ...]:
        """The steps that have answered no request yet."""
        return tuple(step for step, used in zip(self._script.steps, self._used, strict=True) if not used)

    def _is_used_up(self, index: int) -> bool:
        repeat = self._script.steps[index].repeat
        return repeat is not True and self._used[index] >= (repeat or 1)


def _matches(step: ScriptStep, content: RequestContent) -> bool:
    searches = ((step.when, content.recent), (step.first, content.opening), (step.model, content.model))
    return all(pattern is None or re.search(pattern, text) for pattern, text in searches)
