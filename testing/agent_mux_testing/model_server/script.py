"""Scripts of the model, validated when they are loaded.

A script is an ordered list of steps. The first matching step that is not used up answers a request (`requests.py`). In
JSON:

    {"steps": [{"blocks": [{"type": "tool_use", "name": "Bash", "input": {"command": "echo hi"}}]},
               {"when": "hi", "blocks": [{"type": "text", "text": "Done."}]}]}

`blocks` are content blocks of the Anthropic Messages API, `items` are output items of the OpenAI Responses API.
Any `{{re:PATTERN}}` in them becomes group 1 of the last match of PATTERN in the conversation as JSON text.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", omit_defaults=True):
    """Base class of the parts of an answer."""


class ScriptText(Part, frozen=True, tag="text"):
    """Block: text of the answer."""

    text: str


class ScriptThinking(Part, frozen=True, tag="thinking"):
    """Block: thinking before the answer."""

    thinking: str
    signature: str = "ZmFrZS1zaWc="


class ToolUse(Part, frozen=True, tag="tool_use"):
    """Block: a tool call that the agent executes."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""
    """The id of the call; generated when empty."""
    raw_input: str | None = None
    """Text that is streamed instead of `input`: for invalid JSON."""


class ServerToolUse(Part, frozen=True, tag="server_tool_use"):
    """Block: a tool call that the provider itself executes."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class ScriptMessage(Part, frozen=True, tag="message"):
    """Item: text of the answer. `phase` is `commentary` or `final_answer`."""

    text: str
    phase: str | None = None


class ScriptReasoning(Part, frozen=True, tag="reasoning"):
    """Item: the summary of the thinking."""

    text: str


class FunctionCall(Part, frozen=True, tag="function_call"):
    """Item: a tool call. Arguments that are a text are sent unchanged, valid or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    namespace: str | None = None
    call_id: str = ""


class CustomToolCall(Part, frozen=True, tag="custom_tool_call"):
    """Item: a call of a tool whose input is free text."""

    name: str
    input: str
    call_id: str = ""


class Opaque(Part, frozen=True, tag="opaque"):
    """A block or item of any other type, sent unchanged. JSON scripts contain it without this wrapper."""

    native: dict[str, Any]


Block = ScriptText | ScriptThinking | ToolUse | ServerToolUse | Opaque
Item = ScriptMessage | ScriptReasoning | FunctionCall | CustomToolCall | Opaque


class HttpError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An HTTP error instead of an answer. A body of text is sent as text, other values as JSON."""

    status: int
    body: Any = None
    headers: dict[str, str] = {}


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One answer, and the conditions on the requests that it answers."""

    when: str | None = None
    """Regular expression, searched in the JSON text of the last three messages and the model's name."""
    first: str | None = None
    """Regular expression, searched in the JSON text of the first two user messages; it distinguishes sub-agents."""
    model: str | None = None
    """Regular expression, searched in the model's name."""
    is_aux: bool = False
    """Whether the step answers only requests without tools (titles, summaries of web pages), or only others."""
    repeat: bool | int = 1
    """The number of requests that it answers; true: any number."""

    blocks: tuple[Block, ...] | None = None
    items: tuple[Item, ...] | None = None
    stop_reason: str | None = None
    """The stop reason of the Messages API; by default `tool_use` with a tool call, else `end_turn`."""
    usage: dict[str, Any] = {}
    """Replacements for single numbers of the default usage."""
    headers: dict[str, str] = {}
    pieces: int = 3
    """In how many deltas each text is streamed."""

    pre_delay: float = 0.0
    """Seconds before the answer begins."""
    delay: float = 0.0
    """Seconds between two events of a stream."""
    hang: bool = False
    """Whether the stream stops in the middle of the last block without ending."""
    drop: bool = False
    """Whether the connection closes in the middle of the last block, or before an answer that is not streamed."""
    garbage: str | None = None
    """Text that is sent unchanged in the middle of the last block and ends the stream."""
    error: HttpError | None = None
    sse_error: dict[str, Any] | None = None
    """The body of an `error` event that ends the stream after the blocks."""
    failed: dict[str, Any] | None = None
    """Responses API: the stream ends with `response.failed` and this error."""
    incomplete: dict[str, Any] | None = None
    """Responses API: the stream ends with `response.incomplete` and these details."""

    def __post_init__(self) -> None:
        for name in ("when", "first", "model"):
            _check_pattern(name, getattr(self, name))
        if self.pieces < 1:
            raise ValueError(f"pieces must be at least 1, not {self.pieces}")
        if self.delay < 0 or self.pre_delay < 0:
            raise ValueError("delays cannot be negative")

    @property
    def is_cut(self) -> bool:
        """Whether the stream ends before the answer is complete."""
        return self.drop or self.hang or self.garbage is not None


def say(text: str) -> ScriptStep:
    """Return an answer of plain text for any API."""
    return ScriptStep(blocks=(ScriptText(text),), items=(ScriptMessage(text),))


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All answers of a scripted model."""

    steps: tuple[ScriptStep, ...] = ()
    aux: ScriptStep = msgspec.field(default_factory=lambda: say('{"title": "Scripted title"}'))
    """Answers requests without tools that match no `is_aux` step."""
    default: ScriptStep = msgspec.field(default_factory=lambda: say("(script exhausted)"))
    """Answers requests that match no step."""


def _check_pattern(name: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{name} is not a regular expression: {error}") from error


# -- loading


def parse_script(script: Any) -> Script:
    """Parse a script from its JSON form. Raise `ValueError` with the path of an invalid value."""
    parsed = msgspec.convert(_wrap_script(script), Script)
    for index, step in enumerate(parsed.steps):
        try:
            fill_in(step, "")
        except re.error as error:
            raise ValueError(f"{{{{re:...}}}} is not a regular expression: {error} - at `$.steps[{index}]`") from error
    return parsed


def load_script(path: Path) -> Script:
    """Load a script from a JSON file. Raise `ValueError` with the name of the file when it is invalid."""
    try:
        return parse_script(json.loads(path.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def fill_in(step: ScriptStep, conversation: str) -> ScriptStep:
    """Return the step with every `{{re:PATTERN}}` replaced by the last match of PATTERN in the conversation."""
    plain = msgspec.to_builtins(step)
    if "{{re:" not in json.dumps(plain):
        return step
    return msgspec.convert(_replace_patterns(plain, conversation), ScriptStep)


def _replace_patterns(value: Any, conversation: str) -> Any:
    def last_match(found: re.Match[str]) -> str:
        matches = list(re.finditer(found[1], conversation))
        return matches[-1][1] if matches else ""

    match value:
        case str():
            return re.sub(r"\{\{re:(.+?)\}\}", last_match, value)
        case list() | tuple():
            return [_replace_patterns(item, conversation) for item in value]
        case dict():
            return {key: _replace_patterns(item, conversation) for key, item in value.items()}
    return value


_PART_TYPES = {
    "blocks": {"text", "thinking", "tool_use", "server_tool_use", "opaque"},
    "items": {"message", "reasoning", "function_call", "custom_tool_call", "opaque"},
}


def _wrap_script(script: Any) -> Any:
    """Wrap parts of other types as `Opaque`, and leave malformed values to the validation."""
    if not isinstance(script, Mapping):
        return script
    steps = script.get("steps", [])
    wrapped = {name: _wrap(step) for name, step in script.items()}
    return {**wrapped, "steps": [_wrap(step) for step in steps] if isinstance(steps, list | tuple) else steps}


def _wrap(step: Any) -> Any:
    if not isinstance(step, Mapping):
        return step
    lists = [name for name in _PART_TYPES if isinstance(step.get(name), list | tuple)]
    return {**step, **{name: [_wrap_part(part, _PART_TYPES[name]) for part in step[name]] for name in lists}}


def _wrap_part(part: Any, known: set[str]) -> Any:
    if isinstance(part, Mapping) and isinstance(part.get("type"), str) and part["type"] not in known:
        return {"type": "opaque", "native": dict(part)}
    return part
