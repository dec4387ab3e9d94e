"""ACP as OpenClaw's bridge speaks it, with what its gateway writes down.

The bridge drops texts and thoughts, and answers `end_turn` when a model call failed. The launcher adds what it drops as
notifications (see `launching`). Without them (a transcript of another client) we have what the bridge told, and a
turn that says and does nothing at all has failed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replace_protocol
from typing import Any

from msgspec.structs import replace

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, NativeProtocol, Source, Step
from agent_mux.effects import CloseStdin, WriteStdin
from agent_mux.events.cost import CostRecord
from agent_mux.facts import (
    Fact,
    Failure,
    Ignored,
    McpBegin,
    Note,
    SessionKnown,
    StepBegin,
    TextDelta,
    ToolDone,
    ToolReady,
    TurnDone,
    TurnFailed,
    TurnLimitHit,
    TurnStopped,
)
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.acp import AcpCodec, AcpQuirks, AcpRequest, OpenedSession, PromptOutcome, acp_protocol
from agent_mux_adapters._dialects.acp.usage import NO_TOKENS, plus
from agent_mux_adapters._dialects.tolerant import dollars, mapping, whole
from agent_mux_adapters.openclaw.answers import BLANK, Answers
from agent_mux_adapters.openclaw.document import cost_of, usage_of
from agent_mux_adapters.openclaw.failures import failure_of
from agent_mux_adapters.openclaw.gateway_log import failure_in, retry_in, time_of
from agent_mux_adapters.openclaw.tools import DELEGATING, OpenClawTools, caller_of

INTERRUPTION = "[OpenClaw interruption] "
_NO_REPLY = "⚠️ OpenClaw couldn't produce or deliver a reply."
_NO_ANSWER = "⚠️ Agent couldn't generate a response."
NOTHING_SAID = Failure("AGENT_CRASH", "openclaw ended the turn without a word: its ACP bridge does not say what failed")
NO_SESSION = Failure("SESSION_NOT_FOUND", "openclaw has no session with this id, or nothing was said in it")
_PROMPT = b'"session/prompt"'
_OURS = b'{"jsonrpc":"2.0","method":"_agent_mux/'
_CALLED = Ignored("tool_call_update", "told as the call that it made")
_LATER = Ignored("tool_call", "told with the call that it makes, or at its end")
_AFTER = "after the end of the turn"


def settings_of(context: CodecContext, opened: OpenedSession) -> Sequence[AcpRequest | Note]:
    """The effort. The model is in the run's configuration."""
    effort = opened.set_effort(context.thinking_effort) if context.thinking_effort is not None else None
    return [] if effort is None else [effort]


def closing_of(ended: PromptOutcome) -> Fact | None:
    """A turn without a word and without a call has failed."""
    is_silent = ended.stop_reason == "end_turn" and not ended.spoke and ended.failure is None
    return TurnFailed(NOTHING_SAID, ended.cost) if is_silent else None


QUIRKS = AcpQuirks(
    agent="openclaw",
    tools=OpenClawTools(),
    asks_questions=False,
    continues_with="load",  # `resume` wants a session key, and does not find the ids of the bridge's own sessions
    settings=settings_of,
    asides={
        INTERRUPTION: lambda said: failure_of(said.removeprefix(INTERRUPTION)),
        _NO_REPLY: failure_of,
        _NO_ANSWER: failure_of,
    },
    closing_fact=closing_of,
)


class OpenClawAcpCodec:
    """Speaks with `openclaw acp`, and listens to the gateway behind it."""

    def __init__(self, context: CodecContext) -> None:
        self._acp = AcpCodec(context, QUIRKS)
        self._observing = context.prompt is None
        self._hears_gateway = False
        self._answers = Answers()
        self._failure: Failure | None = None
        """Why the last model call failed, until the agent goes on."""
        self._failed_at = 0
        """When it did, in milliseconds since the epoch."""
        self._spent = NO_TOKENS
        self._dollars = 0.0
        """Of the turn, both."""
        self._in_message = False
        self._in_turn = False
        self._through_catalog: set[str | None] = set()
        """Calls that only made another call."""
        self._menders: dict[type, Callable[[Any], tuple[Step, ...]]] = {
            McpBegin: self._called,
            StepBegin: self._begun,
            TextDelta: self._said,
            ToolDone: self._done,
            ToolReady: self._called,
            TurnDone: self._closed,
            TurnFailed: self._closed,
        }

    def start(self) -> Iterable[Step]:
        """The handshake begins."""
        return self._acp.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is STDOUT and line.startswith(_OURS):
            message = load_object(line)
            if message is not None:
                return self._heard(str(message.get("method")), mapping(message.get("params")))
        if source is Source.STDIN and _PROMPT in line:
            self._begin()
        steps = self._acp.receive(line, source)
        if not self._in_turn and not self._observing:
            steps = list(steps)
            if any(isinstance(step, SessionKnown) and _is_empty(step) for step in steps):
                return TurnFailed(NO_SESSION), CloseStdin()
        return self._mended(steps)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return self._mend(self._acp.request(action))

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # as in the contract
        """The process is gone."""
        return self._acp.finish(exit)

    # -- the gateway

    def _heard(self, method: str, params: Mapping[str, Any]) -> tuple[Fact, ...]:
        match method:
            case "_agent_mux/listening":
                self._hears_gateway = True
                return (Ignored(method, "answers and failures will be told"),)
            case "_agent_mux/answer" if self._in_turn:
                if whole(params.get("ts")) > self._failed_at:  # else it is the answer that failed
                    self._failure = None
                return self._answers.written_down(params)
            case "_agent_mux/log" if self._in_turn:
                return self._logged(params)
            case "_agent_mux/used" if self._in_turn:
                return self._used(mapping(params.get("usage")))
        return (Ignored(method, _AFTER),)

    def _logged(self, entry: Mapping[str, Any]) -> tuple[Fact, ...]:
        retry, failure = retry_in(str(entry.get("message"))), failure_in(entry)
        if retry:
            self._failure = None
            self._answers.retried(time_of(entry))
        elif failure is not None and (self._failure is None or "event" in entry):  # what has no name repeats it
            self._failure, self._failed_at = failure, time_of(entry)
        return retry or (Ignored("_agent_mux/log", "kept for the end of the turn"),)

    def _used(self, said: Mapping[str, Any]) -> tuple[Fact, ...]:
        usage = usage_of(said)
        if usage is None or not usage.input_tokens + usage.output_tokens:
            return (Ignored("_agent_mux/used", "no model call came to its end"),)
        self._spent = plus(self._spent, usage)
        self._dollars += dollars(mapping(said.get("cost")).get("total"))
        return (usage,)

    # -- the bridge

    def _mended(self, steps: Iterable[Step]) -> Iterable[Step]:
        if isinstance(steps, tuple) and len(steps) == 1 and isinstance(steps[0], TextDelta):
            return self._said(steps[0])  # the hot path
        mended = self._mend(steps)
        says = [step for step in mended if not isinstance(step, Ignored)]
        if any(isinstance(step, Fact) for step in says):
            return says
        # A line is ignored only when nothing else is said about it, and then once.
        return [next((step for step in mended if isinstance(step, Ignored)), _LATER), *says]

    def _mend(self, steps: Iterable[Step]) -> list[Step]:
        return [new for step in steps for new in self._menders.get(type(step), self._other)(step)]

    def _said(self, step: TextDelta) -> tuple[Step, ...]:
        if self._hears_gateway:
            facts = self._answers.said(step.text)
            if not isinstance(facts[0], Ignored):
                self._failure = None  # the agent goes on
            return facts
        begins, self._in_message = not self._in_message, True
        if not begins or not step.text.startswith("\n"):
            return (step,)
        rest = step.text.lstrip("\n")  # between the messages of a turn is a blank line, which belongs to neither
        self._in_message = bool(rest)
        return (TextDelta(rest),) if rest else (BLANK,)

    def _called(self, step: ToolReady | McpBegin) -> tuple[Step, ...]:
        if step.call_id in self._through_catalog:
            return (_CALLED,)
        self._through_catalog.add(caller_of(step.call_id))
        self._failure, self._in_message = None, False
        delegates = isinstance(step, ToolReady) and step.name == DELEGATING
        return (*self._answers.acted(delegates=delegates), step) if self._hears_gateway else (step,)

    def _done(self, step: ToolDone) -> tuple[Step, ...]:
        return (_CALLED,) if step.call_id in self._through_catalog else (step,)

    def _begun(self, step: StepBegin) -> tuple[Step, ...]:
        # A step is an answer, and the gateway knows better where one begins.
        return () if self._hears_gateway else (step,)

    def _closed(self, closing: TurnDone | TurnFailed) -> tuple[Step, ...]:
        self._in_turn = self._in_message = False
        closing = replace(closing, cost=self._cost())
        is_silent = isinstance(closing, TurnFailed) and closing.failure is NOTHING_SAID
        if self._failure is not None and (is_silent or isinstance(closing, TurnDone)):
            return (TurnFailed(self._failure, closing.cost),)
        return (TurnDone(closing.cost),) if is_silent and self._answers.spoke else (closing,)

    def _other(self, step: Step) -> tuple[Step, ...]:
        if isinstance(step, WriteStdin) and _PROMPT in step.data:
            self._begin()
        if isinstance(step, TurnStopped | TurnLimitHit):
            self._in_turn = False
            step = replace(step, cost=self._cost())
        self._in_message = self._in_message and isinstance(step, Ignored)
        return (step,)

    def _cost(self) -> CostRecord | None:
        return cost_of(self._dollars, self._spent)

    def _begin(self) -> None:
        self._failure, self._in_turn = None, True
        self._spent, self._dollars = NO_TOKENS, 0.0
        self._answers = Answers()


def _is_empty(known: SessionKnown) -> bool:
    """A session that is continued and has no past: OpenClaw makes a new one of any name that it does not know."""
    return known.resumed and known.prior_turns == 0


def acp_of_openclaw(name: str) -> NativeProtocol:
    """The native protocol. Thoughts come whole."""
    usual = acp_protocol(
        QUIRKS,
        name=name,
        streams=frozenset({"text"}),
        chosen_for="all other runs",
        loses=(
            "texts before calls, thoughts, failed model calls and tokens: our launcher tells them where we start it",
            "the tokens of each model call",
            "what sub-agents do: the call that starts one is an ordinary tool",
            "tool inputs as they stream",
            "stderr of commands apart from stdout",
        ),
    )
    return replace_protocol(usual, codec=OpenClawAcpCodec)
