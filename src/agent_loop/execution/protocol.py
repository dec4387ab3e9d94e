"""The messages between an agent and the host of its tools: one JSON object per line, in both directions.

Each request has an id, and gets `Output` lines and one other reply with this id. `Cancel` gets none of its own.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_loop.state import AgentState, ReadMark
from agent_loop.tools.builtin.shell_directory import STATE_KEY
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import CallPreview, ToolResult

PROTOCOL = 1
"""The version of these messages."""
MAX_LINE = 1 << 26
"""The longest line in bytes. Lines can contain images and patches."""


class _Message(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    pass


# -- state


class ToolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of an agent's state that file tools and the shell use."""

    reads: dict[str, ReadMark] = {}
    files: dict[str, str] = {}
    extra: dict[str, Any] = {}
    """The working directory of the shell, as the shell stores it."""

    @classmethod
    def of(cls, state: AgentState, reads: Mapping[str, ReadMark]) -> "ToolState":
        """Return a copy of this part, with these reads."""
        extra = {name: value for name, value in state.extra.items() if name == STATE_KEY}
        return cls(dict(reads), dict(state.files), extra)

    def to_state(self) -> AgentState:
        """Return a new state with this part."""
        return AgentState(reads=dict(self.reads), files=dict(self.files), extra=dict(self.extra))


class StateChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call changed in the state. None: removed."""

    reads: dict[str, ReadMark | None] = {}
    files: dict[str, str | None] = {}
    extra: dict[str, Any] = {}

    @classmethod
    def between(cls, before: ToolState, after: AgentState) -> "StateChange":
        """Return the difference."""
        now = ToolState.of(after, after.reads)
        return cls(
            _difference(before.reads, now.reads),
            _difference(before.files, now.files),
            _difference(before.extra, now.extra),
        )

    def apply_to(self, state: AgentState) -> None:
        """Make the changes in a state, which concurrent calls may have changed elsewhere."""
        _update(state.reads, self.reads)
        _update(state.files, self.files)
        _update(state.extra, {name: value for name, value in self.extra.items() if name == STATE_KEY})


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    names = {*before, *after}
    return {name: after.get(name) for name in sorted(names) if before.get(name) != after.get(name)}


def _update(values: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value


# -- requests


class Open(_Message, frozen=True, tag="open"):
    """The first request: use a directory as the workspace."""

    protocol: int = PROTOCOL
    directory: str | None = None
    """Absolute, or relative to the directory in which the host was started; None: this directory."""


class Call(_Message, frozen=True, tag="call"):
    """Execute a tool."""

    id: int
    tool: str
    arguments: dict[str, Any]
    call_id: str
    state: ToolState
    dedup_reads: bool
    require_read_before_edit: bool
    read_line_numbers: bool


class Preview(_Message, frozen=True, tag="preview"):
    """Return what a call would change, for an approval."""

    id: int
    tool: str
    arguments: dict[str, Any]


class PriorContent(_Message, frozen=True, tag="prior_content"):
    """Return the current content of the file that a call would write."""

    id: int
    tool: str
    arguments: dict[str, Any]


class Cancel(_Message, frozen=True, tag="cancel"):
    """Cancel a request, which then gets its reply."""

    id: int


Request = Open | Call | Preview | PriorContent | Cancel


# -- replies


class Ready(_Message, frozen=True, tag="ready"):
    """The reply to `Open`."""

    protocol: int
    version: str
    """The version of agent-mux."""
    directory: str
    """The absolute path of the workspace."""
    environment: str
    """What the model should know about the machine."""
    tools: list[str]
    """The names of the tools that the host has."""


class Refused(_Message, frozen=True, tag="refused"):
    """The reply to an `Open` that cannot be served."""

    reason: str


class Output(_Message, frozen=True, tag="output"):
    """A part of the output of a running call."""

    id: int
    text: str
    stream: OutputStream


class Returned(_Message, frozen=True, tag="returned"):
    """The result of a call."""

    id: int
    result: ToolResult
    state: StateChange


class Previewed(_Message, frozen=True, tag="previewed"):
    """The reply to `Preview`. None: the call has no preview."""

    id: int
    preview: CallPreview | None


class Prior(_Message, frozen=True, tag="prior"):
    """The reply to `PriorContent`. None: there is no file, or it cannot be shown."""

    id: int
    content: str | None


class Failed(_Message, frozen=True, tag="failed"):
    """The reply to a request that failed or was cancelled."""

    id: int
    message: str
    """For the model."""


FinalReply = Returned | Previewed | Prior | Failed
Reply = Ready | Refused | Output | FinalReply

_REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_ENCODER = msgspec.json.Encoder()


def read_request(line: bytes) -> Request:
    """Return the request in a line. Raises `msgspec.DecodeError`."""
    return _REQUESTS.decode(line)


def read_reply(line: bytes) -> Reply:
    """Return the reply in a line. Raises `msgspec.DecodeError`."""
    return _REPLIES.decode(line)


def to_line(message: Request | Reply) -> bytes:
    """Return a message as a line. Raises `TypeError` and `UnicodeEncodeError` for values that are no JSON."""
    return _ENCODER.encode(message) + b"\n"
