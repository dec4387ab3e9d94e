"""The codec protocol and the values that cross it: actions in, facts and effects out.

An action is what a consumer asks of a running agent. An effect is what a codec asks the runner to do; only the runner
performs effects. Facts have a module of their own, `agent_mux.sdk.facts`.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.errors import ErrorCode
from agent_mux.sdk.facts import Fact
from agent_mux.sdk.options import ApprovalMode, McpServer


class Action(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of all actions. Actions are journaled, so they contain plain data only."""


class Send(Action, frozen=True):
    """A prompt: starts the next turn, or is merged into the running one if the agent does that."""

    text: str
    own_turn: bool = False
    """Whether the prompt must wait for the end of the running turn instead of being merged."""


class Steer(Action, frozen=True):
    """A message for the running turn."""

    text: str


class ApproveAction(Action, frozen=True, tag="Approve"):
    """Approve the request `ApprovalRequested.request_id`."""

    request_id: str
    always: bool = False
    """Whether to allow similar actions for the rest of the session, if the agent supports it."""


class DenyAction(Action, frozen=True, tag="Deny"):
    """Deny an approval request, or decline to answer a question."""

    request_id: str
    reason: str | None = None


class AnswerAction(Action, frozen=True, tag="Answer"):
    """Answer the question `InputRequested.request_id`."""

    request_id: str
    text: str


class SetModel(Action, frozen=True):
    """Use another model from now on: at the latest for the next turn."""

    model: str


class SetApprovalMode(Action, frozen=True):
    """Continue in another approval mode, at the latest from the next turn on.

    In all modes but `plan` the agent has to ask before it acts: agent-mux answers as the mode requires.
    """

    mode: ApprovalMode


class Interrupt(Action, frozen=True):
    """Stop the current operation; the agent may stay alive."""


class Cancel(Action, frozen=True):
    """The run is being aborted: send what the protocol requires before the process is signalled."""


class Close(Action, frozen=True):
    """No more prompts follow: finish the pending work and exit."""


AnyAction = (
    Send | Steer | ApproveAction | DenyAction | AnswerAction | SetModel | SetApprovalMode | Interrupt | Cancel | Close
)


Delivery = Literal["applied", "queued", "merged", "unneeded"]
"""How an action was delivered.

- applied: done; a prompt starts its turn.
- queued: a prompt waits for earlier prompts to be processed, or for a paused run to resume.
- merged: the agent received a message for the running turn and reads it at its next step; if the turn has no next step,
  the message starts a turn of its own.
- unneeded: there was nothing to do, for example an interruption while no turn runs.
"""


class Effect(msgspec.Struct, frozen=True, gc=False):
    """What a codec asks the runner to do."""


class WriteStdin(Effect, frozen=True):
    """Write these bytes to the agent's standard input, in order."""

    data: bytes


class CloseStdin(Effect, frozen=True):
    """Close the agent's standard input after all pending writes. Repeating it has no effect."""


class SignalGroup(Effect, frozen=True):
    """Send a signal (its number) to the agent's process group."""

    signal: int


class Accept(Effect, frozen=True):
    """State how the message was delivered, where this differs from the default.

    By default a `Send` during a turn is queued, a `Steer` is merged into the turn, and without a turn both start one.
    """

    delivery: Delivery


class Refuse(Effect, frozen=True):
    """Reject the action: this agent cannot do it, or cannot do it now. The caller receives the error."""

    code: ErrorCode
    message: str


class Source(Enum):
    """The stream that a native line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"
    STDIN = "stdin"
    """The client's side of a recorded transcript. Never used in a live run."""


STDOUT = Source.STDOUT
"""Alias for hot paths: before Python 3.12, accessing an enum member costs as much as a function call."""


class Exit(msgspec.Struct, frozen=True):
    """How the agent's process ended; both fields are None when unknown (a transcript)."""

    code: int | None = None
    """None when the process was ended by a signal."""
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal in characters."""

    columns: int = 120
    rows: int = 40


class CodecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a codec may know about its run: plain data that is journaled. No secrets, clock or environment."""

    agent: str
    protocol: str
    """Name of the native protocol, a key of `Adapter.protocols`."""
    cwd: str = ""
    prompt: str | None = None
    """Prompt that `start()` sends, if prompts go to stdin. None: observe only, `start()` has no effects."""
    system_prompt: str | None = None
    system_prompt_mode: str = "append"
    model: str | None = None
    thinking_effort: str | None = None
    approval_mode: ApprovalMode = "prompt"
    asks_everything: bool = False
    """Whether the agent must ask before every action it can ask about, because a policy decides."""
    interactive: bool = False
    """Whether to stay open for more prompts."""
    session_id: str | None = None
    fork_session_id: str | None = None
    no_session: bool = False
    max_turns: int | None = None
    """Limit on model calls (`RunOptions.max_model_calls`)."""
    output_schema: dict[str, Any] | None = None
    images: tuple[str, ...] = ()
    """Absolute paths of images to send with the prompt."""
    mcp_servers: tuple[McpServer, ...] = ()
    """MCP servers to announce, if the protocol supports it.

    Recognized secrets are replaced by placeholders, here and in `prompt`; the agent receives the real values.
    """
    settings: dict[str, Any] = {}
    """Plain data that the adapter's own `context` function adds for its codec."""
    debug: bool = False


CodecOutput = Fact | Effect


class Codec(Protocol):
    """Native lines in, facts out; actions in, effects out. One per run, without I/O, clock or randomness.

    No method raises on native input. `receive` returns at least one fact for every line: `Ignored` for a known line
    without information, `Unknown` for an unknown line.
    """

    def start(self) -> Iterable[CodecOutput]:
        """Return the effects that follow the start of the process: handshakes and the first prompt."""
        ...

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Parse one native line, given without its line ending."""
        ...

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Translate an action of the consumer; return `Refuse` for one that cannot be performed."""
        ...

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # the standard term; exit() is not used here
        """Handle the end of the process, after all its output. The assembler closes whatever is still open."""
        ...


@runtime_checkable
class WatchesTerminal(Protocol):
    """A codec for a terminal program, which does not report its end but shows a screen and waits."""

    def quiet(self) -> Iterable[CodecOutput]:
        """Handle `NativeProtocol.quiet_after` seconds without output."""
        ...

    def resized(self, size: "TerminalSize") -> Iterable[CodecOutput]:
        """Handle a change of the terminal's size."""
        ...
