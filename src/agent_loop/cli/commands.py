"""What the program is told on standard input, as values. Source: the agent protocol, "Control lines".

Everything that comes in is hostile: what is no command is a `NoCommand`, with a sentence, and changes nothing.
"""

from typing import Any, Literal

import msgspec

from agent_loop.cli.stream import ApprovalMode

LONGEST_LINE = 1 << 25  # bytes: pictures come in lines, too
LONGEST_SHOWN = 200  # characters of a line that is complained about


class Picture(msgspec.Struct, frozen=True, rename="camel"):
    """An image that belongs to a prompt."""

    mime_type: str
    data: str
    """Base64."""


class _Command(msgspec.Struct, frozen=True, tag_field="type", rename="camel", kw_only=True):
    id: str | None = None
    """Of the sender: it comes back in the response."""


class Start(_Command, frozen=True, tag="start"):
    """What the run is to be like. Fields that are not there: as the program likes."""

    protocol: int = 1
    interactive: bool = False
    model: str | None = None
    session_id: str | None = None
    fork_session_id: str | None = None
    no_session: bool = False
    approval_mode: ApprovalMode | None = None
    asks_everything: bool = False
    system_prompt: str | None = None
    system_prompt_mode: Literal["append", "prepend", "replace"] = "append"
    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    max_duration: float | None = None
    """Seconds. Ours: not of the protocol."""
    thinking_effort: Literal["off", "minimal", "low", "medium", "high", "max"] | None = None
    thinking_budget_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_output_tokens: int | None = None
    output_schema: dict[str, Any] | None = None
    mcp_servers: list[Any] = []
    readable: list[str] = []
    """Directories besides the working directory that tools may read, for example of skills."""
    skills: list[str] = []
    """Directories of skills. Ours: not of the protocol."""
    agents_docs: list[str] | None = None
    """Files that are read as memory; None: AGENTS.md of the working directory. Ours: not of the protocol."""


class _Said(_Command, frozen=True):
    text: str
    images: list[Picture] = []


class Prompt(_Said, frozen=True, tag="prompt"):
    """Begins a turn, now or when the one that runs is over."""


class Steer(_Said, frozen=True, tag="steer"):
    """A message for the turn that runs; without one, a prompt."""


class FollowUp(_Said, frozen=True, tag="follow_up"):
    """A message that the running turn takes in when it would end; without one, a prompt."""


class Approve(_Command, frozen=True, tag="approve"):
    """Allow what was asked; `always`: and the like, for the rest of the session."""

    request_id: str
    always: bool = False


class Deny(_Command, frozen=True, tag="deny"):
    """Refuse it, or decline to answer."""

    request_id: str
    reason: str | None = None


class Answer(_Command, frozen=True, tag="answer"):
    """Answer a question."""

    request_id: str
    text: str


class Interrupt(_Command, frozen=True, tag="interrupt"):
    """Stop the turn that runs; the program lives on."""


class Cancel(_Command, frozen=True, tag="cancel"):
    """Stop everything and leave."""


class Close(_Command, frozen=True, tag="close"):
    """No more prompts: finish what runs and leave."""


Said = Prompt | Steer | FollowUp
Command = Start | Prompt | Steer | FollowUp | Approve | Deny | Answer | Interrupt | Cancel | Close
_DECODER: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_TYPES = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (Start, Prompt, Steer, FollowUp, Approve, Deny, Answer, Interrupt, Cancel, Close)
)


class NoCommand(ValueError):  # noqa: N818  # what it is, not what went wrong
    """The line is no command. `is_unknown`: its type may be one of a later version, and is passed over."""

    def __init__(self, message: str, command_id: str | None = None, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.command_id = command_id
        self.is_unknown = is_unknown


def read_command(line: bytes | None) -> Command:
    """The command of a line; None: the line was too long. Raises `NoCommand`."""
    if line is None:
        raise NoCommand(f"a line has more than {LONGEST_LINE:,} bytes, and none of it was read")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _complaint(line, error) from None


def _complaint(line: bytes, error: Exception) -> NoCommand:
    shown = line[:LONGEST_SHOWN].decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return NoCommand(f"a line is no JSON: {shown!r}")
    if not isinstance(value, dict):
        return NoCommand(f"a line is no JSON object: {shown!r}")
    given_id, kind = value.get("id"), value.get("type")
    command_id = given_id if isinstance(given_id, str) else None
    if not isinstance(kind, str):
        return NoCommand(f"a line has no type: {shown!r}", command_id)
    if kind not in _TYPES:
        return NoCommand(f"control lines of type {kind[:LONGEST_SHOWN]!r} are not known", command_id, is_unknown=True)
    return NoCommand(f"{kind!r} cannot be read: {error}", command_id)
