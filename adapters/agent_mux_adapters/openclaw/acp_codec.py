"""OpenClaw over ACP: the messages of its bridge, `openclaw acp`, together with the record of its gateway.

The bridge drops texts and thinking, and answers `end_turn` when a model call failed. The launcher adds what it drops as
notifications (see `launching`). A transcript of another client lacks them: its facts are those of the bridge alone, and
a turn without text and tool calls counts as failed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replace_protocol
from typing import Any

from msgspec.structs import replace

from agent_mux.events.base import CostRecord
from agent_mux.sdk.adapter import NativeProtocol
from agent_mux.sdk.codec import STDOUT, AnyAction, CloseStdin, CodecContext, CodecOutput, Exit, Source, WriteStdin
from agent_mux.sdk.facts import (
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
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.acp import AcpCodec, AcpQuirks, AcpRequest, OpenedSession, PromptOutcome, acp_protocol
from agent_mux_adapters._dialects.acp.usage import NO_TOKENS, plus
from agent_mux_adapters._dialects.tolerant import dollars, mapping, text, whole
from agent_mux_adapters.openclaw.messages import BLANK, OpenClawMessages
from agent_mux_adapters.openclaw.outcome import failure_in, failure_of, retry_in, time_of
from agent_mux_adapters.openclaw.tools import DELEGATION_TOOL, OpenClawTools, caller_of
from agent_mux_adapters.openclaw.usage import cost_of, usage_of

_INTERRUPTION = "[OpenClaw interruption] "
_NO_REPLY = "⚠️ OpenClaw couldn't produce or deliver a reply."
_NO_ANSWER = "⚠️ Agent couldn't generate a response."
NO_OUTPUT = Failure("AGENT_CRASH", "openclaw ended the turn without output; its ACP bridge does not report what failed")
NO_SESSION = Failure("SESSION_NOT_FOUND", "openclaw has no session with this id, or the session is empty")
_PROMPT = b'"session/prompt"'
_LAUNCHER_LINE = b'{"jsonrpc":"2.0","method":"_agent_mux/'
_CATALOG_CALL = Ignored("tool_call_update", "reported as the call that it made")
_DEFERRED_CALL = Ignored("tool_call", "reported with the call that it makes, or at its end")
_AFTER = "after the end of the turn"


def session_settings(context: CodecContext, opened: OpenedSession) -> Sequence[AcpRequest | Note]:
    """Return the request that sets the effort. The model is in the run's configuration."""
    effort = opened.set_effort(context.thinking_effort) if context.thinking_effort is not None else None
    return [] if effort is None else [effort]


def closing_of(ended: PromptOutcome) -> Fact | None:
    """Return the failure of a turn without text and tool calls; None for other turns."""
    has_no_output = ended.stop_reason == "end_turn" and not ended.spoke and ended.failure is None
    return TurnFailed(NO_OUTPUT, ended.cost) if has_no_output else None


QUIRKS = AcpQuirks(
    agent="openclaw",
    tools=OpenClawTools(),
    asks_questions=False,
    continues_with="load",  # `resume` takes a session key, and does not find the ids of the bridge's own sessions
    settings=session_settings,
    asides={
        _INTERRUPTION: lambda message: failure_of(message.removeprefix(_INTERRUPTION)),
        _NO_REPLY: failure_of,
        _NO_ANSWER: failure_of,
    },
    closing_fact=closing_of,
)


class OpenClawAcpCodec:
    """Codec of `openclaw acp` and of the notifications that the launcher adds from the gateway behind it."""

    def __init__(self, context: CodecContext) -> None:
        self._acp = AcpCodec(context, QUIRKS)
        self._is_observed = context.prompt is None
        self._has_gateway = False
        """Whether the launcher adds the gateway's record."""
        self._messages = OpenClawMessages()
        self._failure: Failure | None = None
        """The failure of the last model call; None once the agent has continued."""
        self._failed_at = 0
        """The time of that failure in milliseconds since the epoch."""
        self._turn_usage = NO_TOKENS
        self._turn_usd = 0.0
        self._in_message = False
        self._in_turn = False
        self._is_cut = False
        """Whether the last answer of the turn ended at its token limit."""
        self._catalog_calls: set[str | None] = set()
        """Calls through the catalog of tools, which are reported as the calls that they make."""
        self._corrections: dict[type, Callable[[Any], tuple[CodecOutput, ...]]] = {
            McpBegin: self._tool_call,
            StepBegin: self._step_begin,
            TextDelta: self._text_delta,
            ToolDone: self._tool_done,
            ToolReady: self._tool_call,
            TurnDone: self._turn_end,
            TurnFailed: self._turn_end,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Return the first request of the handshake."""
        return self._acp.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line: a notification of the launcher, or a message of ACP whose facts are corrected."""
        if source is STDOUT and line.startswith(_LAUNCHER_LINE):
            message = load_object(line)
            if message is not None:
                return self._launcher_notification(str(message.get("method")), mapping(message.get("params")))
        if source is Source.STDIN and _PROMPT in line:
            self._begin_turn()
        steps = self._acp.receive(line, source)
        if not self._in_turn and not self._is_observed:
            steps = list(steps)
            if any(isinstance(step, SessionKnown) and _is_new(step) for step in steps):
                return TurnFailed(NO_SESSION), CloseStdin()
        return self._corrected_line(steps)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the effects of an action of the consumer."""
        return self._corrected(self._acp.request(action))

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # as in the contract
        """Return the facts that the dialect held back until the exit."""
        return self._acp.finish(exit)

    # -- notifications of the launcher

    def _launcher_notification(self, method: str, params: Mapping[str, Any]) -> tuple[Fact, ...]:
        match method:
            case "_agent_mux/listening":
                self._has_gateway = True
                return (Ignored(method, "answers and failures will follow"),)
            case "_agent_mux/answer" if self._in_turn:
                if whole(params.get("ts")) > self._failed_at:  # otherwise it is the answer that failed
                    self._failure = None
                return self._messages.recorded(params)
            case "_agent_mux/log" if self._in_turn:
                return self._log_entry(params)
            case "_agent_mux/used" if self._in_turn:
                if self._messages.is_of_turn(text(params.get("runId"))):
                    self._is_cut = params.get("stopReason") == "length"
                return self._usage(mapping(params.get("usage")))
        return (Ignored(method, _AFTER),)

    def _log_entry(self, entry: Mapping[str, Any]) -> tuple[Fact, ...]:
        retry, failure = retry_in(str(entry.get("message"))), failure_in(entry)
        if retry:
            self._failure = None
            self._messages.retried(time_of(entry))
        elif failure is not None and (self._failure is None or "event" in entry):  # one without a name repeats it
            self._failure, self._failed_at = failure, time_of(entry)
        return retry or (Ignored("_agent_mux/log", "kept for the end of the turn"),)

    def _usage(self, native: Mapping[str, Any]) -> tuple[Fact, ...]:
        usage = usage_of(native)
        if usage is None or not usage.input_tokens + usage.output_tokens:
            return (Ignored("_agent_mux/used", "no model call was completed"),)
        self._turn_usage = plus(self._turn_usage, usage)
        self._turn_usd += dollars(mapping(native.get("cost")).get("total"))
        return (usage,)

    # -- corrections of the bridge's facts

    def _corrected_line(self, steps: Iterable[CodecOutput]) -> Iterable[CodecOutput]:
        """Correct the facts of one line, and keep an `Ignored` fact only where there is no other fact."""
        if isinstance(steps, tuple) and len(steps) == 1 and isinstance(steps[0], TextDelta):
            return self._text_delta(steps[0])  # the hot path
        corrected = self._corrected(steps)
        others = [step for step in corrected if not isinstance(step, Ignored)]
        if any(isinstance(step, Fact) for step in others):
            return others
        return [next((step for step in corrected if isinstance(step, Ignored)), _DEFERRED_CALL), *others]

    def _corrected(self, steps: Iterable[CodecOutput]) -> list[CodecOutput]:
        return [new for step in steps for new in self._corrections.get(type(step), self._other)(step)]

    def _text_delta(self, step: TextDelta) -> tuple[CodecOutput, ...]:
        if self._has_gateway:
            facts = self._messages.fragment(step.text)
            if not isinstance(facts[0], Ignored):
                self._failure = None  # the agent continues
            return facts
        begins, self._in_message = not self._in_message, True
        if not begins or not step.text.startswith("\n"):
            return (step,)
        rest = step.text.lstrip("\n")  # a blank line separates the messages of a turn and belongs to neither
        self._in_message = bool(rest)
        return (TextDelta(rest),) if rest else (BLANK,)

    def _tool_call(self, step: ToolReady | McpBegin) -> tuple[CodecOutput, ...]:
        if step.call_id in self._catalog_calls:
            return (_CATALOG_CALL,)
        self._catalog_calls.add(caller_of(step.call_id))
        self._failure, self._in_message = None, False
        delegates = isinstance(step, ToolReady) and step.name == DELEGATION_TOOL
        return (*self._messages.tool_called(delegates=delegates), step) if self._has_gateway else (step,)

    def _tool_done(self, step: ToolDone) -> tuple[CodecOutput, ...]:
        return (_CATALOG_CALL,) if step.call_id in self._catalog_calls else (step,)

    def _step_begin(self, step: StepBegin) -> tuple[CodecOutput, ...]:
        # A step is an answer, and the gateway's record has its exact beginning.
        return () if self._has_gateway else (step,)

    def _turn_end(self, closing: TurnDone | TurnFailed) -> tuple[CodecOutput, ...]:
        self._in_turn = self._in_message = False
        closing = replace(closing, cost=self._cost())
        has_no_output = isinstance(closing, TurnFailed) and closing.failure is NO_OUTPUT
        if self._failure is not None and (has_no_output or isinstance(closing, TurnDone)):
            return (TurnFailed(self._failure, closing.cost),)
        if has_no_output and self._messages.has_answer:
            closing = TurnDone(closing.cost)
        if isinstance(closing, TurnDone) and self._is_cut:  # which ACP reports as the end of the turn
            closing = replace(closing, stop_reason="length")
        return (closing,)

    def _other(self, step: CodecOutput) -> tuple[CodecOutput, ...]:
        if isinstance(step, WriteStdin) and _PROMPT in step.data:
            self._begin_turn()
        if isinstance(step, TurnStopped | TurnLimitHit):
            self._in_turn = False
            step = replace(step, cost=self._cost())
        self._in_message = self._in_message and isinstance(step, Ignored)
        return (step,)

    def _cost(self) -> CostRecord | None:
        return cost_of(self._turn_usd, self._turn_usage)

    def _begin_turn(self) -> None:
        self._failure, self._in_turn, self._is_cut = None, True, False
        self._turn_usage, self._turn_usd = NO_TOKENS, 0.0
        self._messages = OpenClawMessages()


def _is_new(known: SessionKnown) -> bool:
    """Return whether a resumed session has no past: OpenClaw creates a session for each unknown name."""
    return known.resumed and known.prior_turns == 0


def openclaw_acp_protocol(name: str) -> NativeProtocol:
    """Return the native protocol. It streams text only: the gateway records thinking in whole blocks."""
    protocol = acp_protocol(
        QUIRKS,
        name=name,
        streams=frozenset({"text"}),
        chosen_for="all other runs",
        loses=(
            "text before calls, thinking, failed model calls and tokens, unless our launcher started it",
            "the tokens of each model call",
            "what sub-agents do: the call that starts one is an ordinary tool",
            "tool inputs as they stream",
            "stderr of commands apart from stdout",
        ),
    )
    return replace_protocol(protocol, codec=OpenClawAcpCodec)
