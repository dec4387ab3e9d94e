"""A program that prints AgentEvents and takes control lines. Source: docs/reference/agent-protocol.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.agent_events.approvals import AgentEventsApprovals
from agent_mux_adapters._dialects.agent_events.reader import AgentEventsReader
from agent_mux_adapters._dialects.agent_events.turns import AgentEventsTurns
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[Step, ...]


class AgentEventsCodec:
    """One run. See `agent_mux.adapter.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        self._reader = AgentEventsReader()
        self._conversation = AgentEventsTurns(context)
        self._requests = AgentEventsApprovals()

    def start(self) -> Steps:
        """The process runs."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Steps:
        """One line."""
        if source is STDOUT:
            return self._reader.fragment(line) or self._receive(line)
        if source is Source.STDERR:
            return (facts.LogLine(line.decode("utf-8", "replace"), "stderr"),)
        return _overheard(line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return dispatch_action(action, self._conversation, self._requests.reply)

    def finish(self, exit: Exit) -> Steps:  # noqa: A002, ARG002  # as in the contract
        """The process is gone."""
        return self._reader.release()

    # -- inside

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        kind = text(native.get("type"))
        if kind == "response":
            return self._conversation.answered(native)
        told = self._reader.told(native)
        if told is None:
            return (facts.Unknown(kind, line.decode("utf-8", "replace")),)
        return self._after(kind, told)

    def _after(self, kind: str, told: tuple[facts.Fact, ...]) -> Steps:
        if self._conversation.turn == "asked":
            told = tuple(map(_answering, told))
        self._requests.after(told)
        effects = self._conversation.after(told)
        if self._conversation.turn == "none":
            self._requests.turn_over()
        left = self._conversation.leave() if kind == "session_end" else ()
        return *told, *effects, *left


def _answering(fact: facts.Fact) -> facts.Fact:
    """The run ended, with a prompt that no turn took up: this is its turn."""
    return fact.outcome if isinstance(fact, facts.RunClosed) and fact.outcome is not None else fact


def _overheard(line: bytes) -> tuple[facts.Fact, ...]:
    native: Mapping[str, Any] | None = load_object(line)
    if native is None:
        return (facts.Note("a line to the program that is no JSON object", "warn"),)
    kind = text(native.get("type"))
    if kind == "answer":  # events say nothing of it
        return (facts.RequestSettled(text(native.get("requestId")), granted=True),)
    return (facts.Ignored(f"stdin/{kind}", "our own side"),)
