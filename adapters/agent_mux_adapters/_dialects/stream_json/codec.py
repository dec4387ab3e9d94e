"""When the agent's standard input may be closed: when every prompt is answered, and nobody wants to say more.

With stream-json input an agent lives until its input closes.
"""

import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from agent_mux import facts
from agent_mux.actions import Answer, AnyAction, Approve, Cancel, Close, Deny, Interrupt, Send, Steer
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.effects import Accept, CloseStdin, Refuse, SignalGroup
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.stream_json import wire
from agent_mux_adapters._dialects.stream_json.approvals import StreamJsonApprovals
from agent_mux_adapters._dialects.stream_json.messages import MessageReader
from agent_mux_adapters._dialects.stream_json.wire import decode_line
from agent_mux_adapters._dialects.tolerant import WrongShapeError, kind_of, text


class StreamJsonInput:
    """What is still owed: by us an end, by the agent its answers. To be subclassed where turns begin by themselves."""

    def __init__(self, *, keep_open: bool) -> None:
        self.closed = False
        self._keep_open = keep_open
        self._unanswered = 0
        """Prompts sent that no turn has taken up, as far as it is known."""

    @property
    def may_close(self) -> bool:
        """Nothing more will come of its own, and nobody wants to say more."""
        return not (self.is_owed or self._keep_open or self.closed)

    @property
    def is_owed(self) -> bool:
        """The agent still works, or will by itself."""
        return self._unanswered > 0

    def finish(self) -> None:
        """Nobody will say more."""
        self._keep_open = False

    def prompt_sent(self) -> None:
        """A prompt was written."""
        self._unanswered += 1

    def prompt_answered(self) -> None:
        """A turn took up a prompt, or ended that had."""
        self._unanswered = max(self._unanswered - 1, 0)


# TODO The codec of a Claude-shaped agent: what its lines and the consumer's actions have in common with all the others.

ONE_SHOT = "stream-json"
TWO_WAY = "stream-json-two-way"

HELLO: Mapping[str, Any] = {"hooks": None}
"""What `initialize` tells the agent, if it has no more to be told."""

Steps = tuple[Step, ...]
Facts = tuple[facts.Fact, ...]


class StreamJsonReader(Protocol):
    """Reads the lines of one agent; the control protocol and the hot path are the codec's own."""

    @property
    def main(self) -> MessageReader:
        """The messages of the main agent."""
        ...

    def read(self, line: Mapping[str, Any]) -> Facts | None:
        """The facts of a line, at least one; None when its type is not known. Raises `WrongShapeError`."""
        ...

    def finish(self) -> Facts:
        """Nothing more will come."""
        ...


def is_live(context: CodecContext) -> bool:
    """We hold the other end of the conversation; otherwise there is nothing to write to."""
    return context.protocol == TWO_WAY and context.prompt is not None


class StreamJsonCodec:
    """One run. See `agent_mux.adapter.Codec`. An agent's own codec hands its parts to this one."""

    def __init__(
        self,
        context: CodecContext,
        reader: StreamJsonReader,
        requests: StreamJsonApprovals,
        conversation: StreamJsonInput,
        hello: Mapping[str, Any] = HELLO,
    ) -> None:
        self._context = context
        self._hello = hello
        self._live = is_live(context)
        self._conversation = conversation
        self._requests = requests
        self._reader = reader
        self._fragment = reader.main.fragment
        self._controls = 0
        self._waiting: deque[str] = deque()
        """Prompts that must not be merged into the turn that runs."""
        self._control_readers: Mapping[str, Callable[[Mapping[str, Any]], Steps]] = {
            "control_request": requests.asked,
            "control_response": requests.answered,
            "control_cancel_request": requests.withdrawn,
        }

    # -- the four methods of a codec

    def start(self) -> Steps:
        """The handshake and the first prompt, where the protocol takes them."""
        if not self._live:
            return ()
        hello = self._control("initialize", **self._hello)
        return (hello, *self._send(self._context.prompt)) if self._context.prompt else (hello,)

    def receive(self, line: bytes, source: Source) -> Steps:
        """One line."""
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

    def request(self, action: AnyAction) -> Steps:
        """What the consumer wants."""
        match action:
            case Send(said, own_turn=True) if self._may_write and self._conversation.is_owed:
                self._waiting.append(said)
                return (Accept("queued"),)
            case Send(said) | Steer(said):
                return self._send(said)
            case Approve() | Deny() | Answer():
                return self._requests.act(action)
            case Interrupt():
                return self._interrupt()
            case Cancel():
                self._waiting.clear()
                return self._interrupt() if self._may_write else ()
            case Close():
                self._conversation.finish()
                return self._go_on()

    def finish(self, exit: Exit) -> Steps:  # noqa: A002, ARG002  # the protocol's names; how it died says nothing here
        """The process is gone."""
        return self._reader.finish()

    # -- lines

    def _read(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            if not line.strip():
                return (facts.Ignored("blank", "an empty line"),)
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        try:
            read = self._control_readers.get(text(native.get("type")), self._reader.read)
            told = read(native)
        except WrongShapeError:
            told = None
        if told is None:
            return _unknown(line, kind_of(native))
        return (*told, *self._go_on())

    def _read_ours(self, line: bytes) -> Steps:
        native = load_object(line)
        try:
            if native is not None and native.get("type") == "control_response":
                return self._requests.answered_before(native)
        except WrongShapeError:
            return _unknown(line, kind_of(native or {}))
        return (facts.Ignored(f"stdin/{kind_of(native or {})}", "our own side of the conversation"),)

    # -- our side

    @property
    def _may_write(self) -> bool:
        return self._live and not self._conversation.closed

    def _send(self, said: str | None) -> Steps:
        if not self._may_write:
            why = f"this run of {self._context.agent} takes no further prompts; start it interactive"
            return (Refuse("STDIN_NOT_AVAILABLE", why),)
        is_busy = self._conversation.is_owed
        self._conversation.prompt_sent()
        # The agent takes whatever it is told into the turn that runs.
        return (wire.user_message(said or ""), *([Accept("merged")] if is_busy else ()))

    def _interrupt(self) -> Steps:
        if self._may_write:
            return (self._control("interrupt"),)
        # Its answer to SIGINT is a closing message, too.
        return (SignalGroup(int(signal.SIGINT)),)

    def _control(self, subtype: str, **fields: Any) -> Step:
        self._controls += 1
        return wire.control_request(f"mux-{self._controls}", subtype, **fields)

    def _go_on(self) -> Steps:
        """The next prompt that had to wait, or the end of our input, if it is time for one of them."""
        if self._waiting and self._may_write and not self._conversation.is_owed:
            return self._send(self._waiting.popleft())
        if not (self._live and self._conversation.may_close):
            return ()
        self._conversation.closed = True
        return (CloseStdin(),)


def _unknown(line: bytes, kind: str) -> Steps:
    return (facts.Unknown(kind or "untyped", line.decode("utf-8", "replace")),)
