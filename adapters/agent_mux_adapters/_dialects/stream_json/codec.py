"""The codec of a stream-json agent: lines, consumer actions, and when its stdin may be closed.

With stream-json input an agent runs until its stdin is closed, so the codec closes it when every prompt is answered and
the consumer will send no more.
"""

import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import (
    STDOUT,
    Accept,
    AnswerAction,
    AnyAction,
    ApproveAction,
    Cancel,
    Close,
    CloseStdin,
    CodecContext,
    CodecOutput,
    DenyAction,
    Exit,
    Interrupt,
    Refuse,
    Send,
    SetApprovalMode,
    SetModel,
    SignalGroup,
    Source,
    Steer,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.stream_json import wire
from agent_mux_adapters._dialects.stream_json.approvals import StreamJsonApprovals
from agent_mux_adapters._dialects.stream_json.messages import MessageReader
from agent_mux_adapters._dialects.stream_json.wire import decode_line
from agent_mux_adapters._dialects.tolerant import WrongShapeError, kind_of, text


class StreamJsonInput:
    """Decides when the agent's stdin may be closed; subclassed for agents whose turns also begin by themselves."""

    def __init__(self, *, keep_open: bool) -> None:
        self.closed = False
        self._keep_open = keep_open
        self._unanswered = 0
        """The number of prompts that no turn has taken up yet."""

    @property
    def may_close(self) -> bool:
        """Whether the agent has nothing to do and the consumer will send no more."""
        return not (self.is_busy or self._keep_open or self.closed)

    @property
    def is_busy(self) -> bool:
        """Whether the agent works, or will begin to."""
        return self._unanswered > 0

    def finish(self) -> None:
        """Note that the consumer will send no more prompts."""
        self._keep_open = False

    def prompt_sent(self) -> None:
        """Count a prompt that was written."""
        self._unanswered += 1

    def prompt_answered(self) -> None:
        """Count a prompt that a turn took up, or whose turn ended."""
        self._unanswered = max(self._unanswered - 1, 0)


ONE_SHOT = "stream-json"
TWO_WAY = "stream-json-two-way"

HELLO: Mapping[str, Any] = {"hooks": None}
"""The fields of `initialize` when the adapter has none of its own."""

Steps = tuple[CodecOutput, ...]
Facts = tuple[facts.Fact, ...]


class StreamJsonReader(Protocol):
    """Reads the lines of one agent, except control lines and the fragments of the hot path."""

    @property
    def main(self) -> MessageReader:
        """The message reader of the main agent."""
        ...

    def read(self, line: Mapping[str, Any]) -> Facts | None:
        """Return at least one fact; None when the type of the line is unknown. Raises `WrongShapeError`."""
        ...

    def finish(self) -> Facts:
        """Return the facts that are due when the process has exited."""
        ...


def is_live(context: CodecContext) -> bool:
    """Return whether we drive the agent; otherwise a transcript is observed and nothing is written."""
    return context.protocol == TWO_WAY and context.prompt is not None


class StreamJsonCodec:
    """The codec of one run. See `agent_mux.sdk.codec.Codec`.

    The codec of an agent passes its own parts to this one.
    """

    def __init__(
        self,
        context: CodecContext,
        reader: StreamJsonReader,
        approvals: StreamJsonApprovals,
        agent_input: StreamJsonInput,
        hello: Mapping[str, Any] = HELLO,
    ) -> None:
        self._context = context
        self._hello = hello
        self._live = is_live(context)
        self._input = agent_input
        self._approvals = approvals
        self._reader = reader
        self._fragment = reader.main.fragment
        self._controls = 0
        self._waiting: deque[str] = deque()
        """Prompts for turns of their own, held back so that the agent does not merge them into the running turn."""
        self._control_readers: Mapping[str, Callable[[Mapping[str, Any]], Steps]] = {
            "control_request": approvals.read_request,
            "control_response": approvals.read_response,
            "control_cancel_request": approvals.read_cancellation,
        }

    # -- the four methods of a codec

    def start(self) -> Steps:
        """Write the handshake and the first prompt, if the protocol takes them."""
        if not self._live:
            return ()
        hello = self._control("initialize", **self._hello)
        return (hello, *self._send(self._context.prompt)) if self._context.prompt else (hello,)

    def receive(self, line: bytes, source: Source) -> Steps:
        """Return the steps of one line."""
        if source is STDOUT:
            try:
                head = decode_line(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return self._read(line)
            event = head.event
            if event is None or event.type != "content_block_delta" or event.delta is None or head.parent_tool_use_id:
                return self._read(line)
            # The hot path: a fragment of the main agent.
            return self._fragment(event.index, event.delta) or _unknown(line, "stream_event/content_block_delta")
        if source is Source.STDERR:
            return (facts.LogLine(line.decode("utf-8", "replace"), "stderr"),)
        return self._read_ours(line)

    def request(self, action: AnyAction) -> Steps:  # noqa: PLR0911  # one return per action
        """Carry out an action of the consumer."""
        match action:
            case Send(prompt, own_turn=True) if self._may_write and self._input.is_busy:
                self._waiting.append(prompt)
                return (Accept("queued"),)
            case Send(prompt) | Steer(prompt):
                return self._send(prompt)
            case ApproveAction() | DenyAction() | AnswerAction():
                return self._approvals.act(action)
            case SetModel(model):
                return self._set("set_model", model=model)
            case SetApprovalMode(mode):
                return self._set("set_permission_mode", mode="plan" if mode == "plan" else "default")
            case Interrupt():
                return self._interrupt()
            case Cancel():
                self._waiting.clear()
                return self._interrupt() if self._may_write else ()
            case Close():
                self._input.finish()
                return self._due_steps()

    def finish(self, exit: Exit) -> Steps:  # noqa: A002, ARG002  # as in the contract
        """Return the facts that are due when the process has exited."""
        return (*self._approvals.close(), *self._reader.finish())

    # -- lines

    def _read(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            if not line.strip():
                return (facts.Ignored("blank", "an empty line"),)
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        decided = self._approvals.decisions_in(native)
        try:
            read = self._control_readers.get(text(native.get("type")), self._reader.read)
            line_facts = read(native)
        except WrongShapeError:
            line_facts = None
        if line_facts is None:
            return (*decided, *_unknown(line, kind_of(native)))
        return (*decided, *line_facts, *self._due_steps())

    def _read_ours(self, line: bytes) -> Steps:
        native = load_object(line)
        try:
            if native is not None and native.get("type") == "control_response":
                return self._approvals.read_client_response(native)
        except WrongShapeError:
            return _unknown(line, kind_of(native or {}))
        return (facts.Ignored(f"stdin/{kind_of(native or {})}", "our own side of the conversation"),)

    # -- our side

    @property
    def _may_write(self) -> bool:
        return self._live and not self._input.closed

    def _send(self, prompt: str | None) -> Steps:
        if not self._may_write:
            message = f"this run of {self._context.agent} takes no further prompts; start it interactive"
            return (Refuse("STDIN_NOT_AVAILABLE", message),)
        is_busy = self._input.is_busy
        self._input.prompt_sent()
        # The agent merges every message into the running turn.
        return (wire.user_message(prompt or ""), *([Accept("merged")] if is_busy else ()))

    def _set(self, subtype: str, **fields: Any) -> Steps:
        """Send a control request that changes the session. In permission mode `default` the agent asks."""
        if not self._may_write:
            message = f"this run of {self._context.agent} takes no control requests; start it interactive"
            return (Refuse("CAPABILITY_ERROR", message),)
        return (self._control(subtype, **fields),)

    def _interrupt(self) -> Steps:
        if self._may_write:
            return (self._control("interrupt"),)
        # The agent also answers SIGINT with a closing message.
        return (SignalGroup(int(signal.SIGINT)),)

    def _control(self, subtype: str, **fields: Any) -> CodecOutput:
        self._controls += 1
        return wire.control_request(f"mux-{self._controls}", subtype, **fields)

    def _due_steps(self) -> Steps:
        """Return the next prompt that was held back, or the end of our input, if one is due."""
        if self._waiting and self._may_write and not self._input.is_busy:
            return self._send(self._waiting.popleft())
        if not (self._live and self._input.may_close):
            return ()
        self._input.closed = True
        return (CloseStdin(),)


def _unknown(line: bytes, kind: str) -> Steps:
    return (facts.Unknown(kind or "untyped", line.decode("utf-8", "replace")),)
