"""The codec of a program that prints AgentEvents and reads control lines. See docs/reference/agent-protocol.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.agent_events.approvals import AgentEventsApprovals
from agent_mux_adapters._dialects.agent_events.reader import AgentEventsReader
from agent_mux_adapters._dialects.agent_events.turns import AgentEventsTurns
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[CodecOutput, ...]


class AgentEventsCodec:
    """The codec of one run. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._reader = AgentEventsReader()
        self._turns = AgentEventsTurns(context)
        self._approvals = AgentEventsApprovals()

    def start(self) -> Steps:
        """Write the start line and the first prompt."""
        return self._turns.start()

    def receive(self, line: bytes, source: Source) -> Steps:
        """Return the steps of one line."""
        if source is STDOUT:
            return self._reader.fragment(line) or self._receive(line)
        if source is Source.STDERR:
            return (facts.LogLine(line.decode("utf-8", "replace"), "stderr"),)
        return _client_line(line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Carry out an action of the consumer."""
        return dispatch_action(action, self._turns, self._approvals.reply)

    def finish(self, exit: Exit) -> Steps:  # noqa: A002, ARG002  # as in the contract
        """Return the facts that were held back."""
        return self._reader.release()

    # -- inside

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        kind = text(native.get("type"))
        if kind == "response":
            return self._turns.answered(native)
        read = self._reader.read_line(native)
        if read is None:
            return (facts.Unknown(kind, line.decode("utf-8", "replace")),)
        return self._with_effects(kind, read)

    def _with_effects(self, kind: str, read: tuple[facts.Fact, ...]) -> Steps:
        if self._turns.turn == "asked":
            read = tuple(map(_as_prompt_outcome, read))
        self._approvals.track(read)
        effects = self._turns.track(read)
        if self._turns.turn == "none":
            self._approvals.turn_over()
        final_effects = self._turns.finish_run() if kind == "session_end" else ()
        return *read, *effects, *final_effects


def _as_prompt_outcome(fact: facts.Fact) -> facts.Fact:
    """Turn the end of the run into the outcome of a prompt that no turn took up."""
    return fact.outcome if isinstance(fact, facts.RunClosed) and fact.outcome is not None else fact


def _client_line(line: bytes) -> tuple[facts.Fact, ...]:
    native: Mapping[str, Any] | None = load_object(line)
    if native is None:
        return (facts.Note("a line to the program is not a JSON object", "warn"),)
    kind = text(native.get("type"))
    if kind == "answer":  # events do not report answers
        return (facts.RequestResolved(text(native.get("requestId")), granted=True),)
    return (facts.Ignored(f"stdin/{kind}", "our own side"),)
