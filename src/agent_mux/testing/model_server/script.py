"""What the scripted model is told to say: typed, checked when it is read, never when it is too late.

A script is an ordered list of steps; each request takes the first step that fits it and is not used up
(`matching.py`). In JSON:

    {"steps": [{"blocks": [{"type": "tool_use", "name": "Bash", "input": {"command": "echo hi"}}]},
               {"when": "hi", "blocks": [{"type": "text", "text": "Done."}]}]}

`blocks` are content blocks of the Anthropic Messages API, `items` are output items of the OpenAI Responses API.
Any `{{re:PATTERN}}` in them becomes group 1 of the last match of PATTERN in the conversation as JSON text.
"""

import re
from typing import Any

import msgspec


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", omit_defaults=True):
    """Base of everything a model can say."""


class Text(Part, frozen=True, tag="text"):
    """Block: what the model answers."""

    text: str


class Thinking(Part, frozen=True, tag="thinking"):
    """Block: what it thinks first."""

    thinking: str
    signature: str = "ZmFrZS1zaWc="


class ToolUse(Part, frozen=True, tag="tool_use"):
    """Block: a tool call."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""
    """Made up when empty."""
    raw_input: str | None = None
    """Streamed instead of `input`, letter by letter: for JSON that is broken."""


class ServerToolUse(Part, frozen=True, tag="server_tool_use"):
    """Block: a tool call that the provider itself carries out."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class Message(Part, frozen=True, tag="message"):
    """Item: what the model answers. `phase` is `commentary` or `final_answer`."""

    text: str
    phase: str | None = None


class Reasoning(Part, frozen=True, tag="reasoning"):
    """Item: the summary of what it thinks."""

    text: str


class FunctionCall(Part, frozen=True, tag="function_call"):
    """Item: a tool call. Arguments as text are sent as they are, broken or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    namespace: str | None = None
    call_id: str = ""


class CustomToolCall(Part, frozen=True, tag="custom_tool_call"):
    """Item: a call of a tool that takes free text."""

    name: str
    input: str
    call_id: str = ""


class Opaque(Part, frozen=True, tag="opaque"):
    """A block or item of any other type, sent as it is. JSON scripts need not say so."""

    native: dict[str, Any]


Block = Text | Thinking | ToolUse | ServerToolUse | Opaque
Item = Message | Reasoning | FunctionCall | CustomToolCall | Opaque


class HttpError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that is no answer. A body of text is sent as text, anything else as JSON."""

    status: int
    body: Any = None
    headers: dict[str, str] = {}


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One answer, and the requests it is for."""

    when: str | None = None
    """Regex, searched in the JSON text of the last three messages and the model's name."""
    first: str | None = None
    """Regex, searched in the JSON text of the first two user messages: tells sub-agents apart."""
    model: str | None = None
    """Regex, searched in the model's name."""
    is_aux: bool = False
    """For requests without tools (titles, summaries of web pages) and only for them."""
    repeat: bool | int = 1
    """How many requests it answers; true: all."""

    blocks: tuple[Block, ...] | None = None
    items: tuple[Item, ...] | None = None
    stop_reason: str | None = None
    """Messages API; default: `tool_use` when there is one, else `end_turn`."""
    usage: dict[str, Any] = {}
    """Laid over the usual numbers."""
    headers: dict[str, str] = {}
    pieces: int = 3
    """In how many deltas each text is streamed."""

    pre_delay: float = 0.0
    """Seconds before the answer begins."""
    delay: float = 0.0
    """Seconds between two events of a stream."""
    hang: bool = False
    """Stay silent in the middle of the last block, for ever."""
    drop: bool = False
    """Close the connection in the middle of the last block. Answers that are not streamed come whole."""
    garbage: str | None = None
    """This text is sent in the middle of the last block, as it is, and ends the stream."""
    error: HttpError | None = None
    sse_error: dict[str, Any] | None = None
    """Messages API: this `error` event ends the stream, after the blocks."""
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
        """The stream ends before the answer does."""
        return self.drop or self.hang or self.garbage is not None


def say(text: str) -> Step:
    """An answer of plain text, whichever API asks."""
    return Step(blocks=(Text(text),), items=(Message(text),))


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All answers of one scripted model."""

    steps: tuple[Step, ...] = ()
    aux: Step = msgspec.field(default_factory=lambda: say('{"title": "Scripted title"}'))
    """Answers requests without tools that no `is_aux` step is for."""
    default: Step = msgspec.field(default_factory=lambda: say("(script exhausted)"))
    """Answers when no step fits."""


def _check_pattern(name: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{name} is no regular expression: {error}") from error
