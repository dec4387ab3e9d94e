"""The codec protocol and the values that cross it: actions in, facts and effects out.

An action is what a consumer asks of a running agent. An effect is what a codec asks the runner to do; only the runner
performs effects. Facts have a module of their own, `agent_mux.sdk.facts`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agent_mux.errors import ErrorCode
from agent_mux.sdk.facts import Fact
from agent_mux.sdk.options import ApprovalMode, McpServer


class Action(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of all actions. They are journaled, so they hold plain data."""


class Send(Action, frozen=True):
    """A prompt: begins the next turn, or is merged into the running one where the agent does that."""

    text: str
    own_turn: bool = False
    """It must not be merged: it waits until the running turn is over."""


class Steer(Action, frozen=True):
    """A message for the turn that runs now."""

    text: str


class ApproveAction(Action, frozen=True, tag="Approve"):
    """Allow what `ApprovalAsked.request_id` asks."""

    request_id: str
    always: bool = False
    """And the like for the rest of the session, where the agent can."""


class DenyAction(Action, frozen=True, tag="Deny"):
    """Refuse what was asked, or decline to answer a question."""

    request_id: str
    reason: str | None = None


class AnswerAction(Action, frozen=True, tag="Answer"):
    """Answer the question `InputAsked.request_id`."""

    request_id: str
    text: str


class Interrupt(Action, frozen=True):
    """Stop the current operation; the agent may live on."""


class Cancel(Action, frozen=True):
    """The run is being aborted: whatever the protocol has to say before the signals come."""


class Close(Action, frozen=True):
    """No more prompts will come: finish what was asked and leave."""


AnyAction = Send | Steer | ApproveAction | DenyAction | AnswerAction | Interrupt | Cancel | Close


Delivery = Literal["applied", "queued", "merged", "unneeded"]
"""What became of what was asked for.

applied: it is done; a prompt begins its turn. queued: a prompt waits until those before it are over, or a paused run
goes on. merged: the agent was given a message for the turn that runs, and takes it in at its next step; a turn that has
no next step leaves it to a turn of its own. unneeded: there was nothing to do, as with an interruption while nothing
runs.
"""


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Base of all effects."""


class WriteStdin(Effect, frozen=True):
    """Send these bytes to the agent, after all that was sent before."""

    data: bytes


class CloseStdin(Effect, frozen=True):
    """Close the agent's standard input once everything before it is written. Told twice, the second does nothing."""


class SignalGroup(Effect, frozen=True):
    """Send a signal (its number) to the agent's process group."""

    signal: int


class Accept(Effect, frozen=True):
    """What becomes of the message that was sent, where it is not the usual.

    Usually a `Send` during a turn waits for its end, a `Steer` is merged into it, and without a turn both begin one.
    """

    delivery: Delivery


class Refuse(Effect, frozen=True):
    """The action that was requested cannot be done by this agent, or not now. Becomes the error of the caller."""

    code: ErrorCode
    message: str


class Source(Enum):
    """Which stream a native line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"
    STDIN = "stdin"
    """Our own side of the conversation, seen in a transcript that somebody else recorded. Never in a live run."""


STDOUT = Source.STDOUT
"""For hot paths: before Python 3.12, naming a member of an enum by its class costs as much as calling a function."""


class Exit(msgspec.Struct, frozen=True):
    """How the agent's process ended; both None when nobody knows (a transcript)."""

    code: int | None = None
    """None when a signal ended it."""
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """How many characters a terminal shows."""

    columns: int = 120
    rows: int = 40


class CodecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a codec knows about its run: plain data, to be journaled. No secrets, no clock, no environment."""

    agent: str
    protocol: str
    """The name of the native protocol, one of `Adapter.protocols`."""
    cwd: str = ""
    prompt: str | None = None
    """What `start()` sends, where the protocol takes prompts on stdin. None: only observe; `start()` has no effects."""
    system_prompt: str | None = None
    system_prompt_mode: str = "append"
    model: str | None = None
    thinking_effort: str | None = None
    approval_mode: ApprovalMode = "prompt"
    asks_everything: bool = False
    """Rules decide what the agent may do: it has to ask for as much as it can be made to."""
    interactive: bool = False
    """Stay open for more prompts after the first."""
    session_id: str | None = None
    fork_session_id: str | None = None
    no_session: bool = False
    max_turns: int | None = None
    output_schema: dict[str, Any] | None = None
    images: tuple[str, ...] = ()
    """Absolute paths of images to send with the prompt."""
    mcp_servers: tuple[McpServer, ...] = ()
    """To be announced, where the protocol takes them. Secrets that can be recognised are stand-ins, here and in
    `prompt`; the agent is sent the real ones."""
    settings: dict[str, Any] = {}
    """Whatever the adapter's own `context` wants its codec to know. Plain data."""
    debug: bool = False


Step = Fact | Effect


class Codec(Protocol):
    """Native lines in, facts out; actions in, effects out. One per run; sans-IO; no clock, no randomness.

    None of the methods raises on native input. `receive` returns at least one fact for every line:
    `Ignored` when the line is known and says nothing, `Unknown` when it is not known.
    """

    def start(self) -> Iterable[Step]:
        """The process runs: handshakes and the first prompt, as effects."""
        ...

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line, without its line ending."""
        ...

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something. What cannot be done is answered with `Refuse`."""
        ...

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # the word of the trade; nobody calls exit() here
        """The process is gone and all its output was received. The assembler closes whatever is still open."""
        ...


@runtime_checkable
class WatchesTerminal(Protocol):
    """A codec for an agent at a terminal: it does not say when it is done, it shows something and then it waits."""

    def quiet(self) -> Iterable[Step]:
        """Nothing was printed for `NativeProtocol.quiet_after` seconds."""
        ...

    def resized(self, size: "TerminalSize") -> Iterable[Step]:
        """The terminal has another size now."""
        ...
