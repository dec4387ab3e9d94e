"""The events of any run conform to the AgentEvent contract, wherever the run breaks off."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.cli.loop_runs import LOOP, conversations

from agent_loop import events as loop
from agent_loop.cli.projection import LoopProjection
from agent_loop.cli.stream import ApprovalMode, EmittedEvent, EventStream, stream_context
from agent_loop.messages import Text, ToolCall, ToolMessage, user
from agent_loop.tools import effects
from agent_loop.tools.effects import OutputStream
from agent_loop.usage import Usage
from agent_mux.assembler import Ending
from agent_mux.contract import validate
from agent_mux.events import AgentEvent
from agent_mux.sdk import facts

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class EventLog:
    """An event stream that collects its events."""

    def __init__(self, approvals: ApprovalMode = "yolo", *, interactive: bool = False) -> None:
        self.events: list[AgentEvent] = []
        self._time = 1_763_762_400_000
        context = stream_context(RUN_ID, cwd="/work", approvals=approvals, interactive=interactive)
        self.extra: list[tuple[str, Any]] = []
        self.stream = EventStream(context, self._take, self._tick)

    def _take(self, emitted: Sequence[EmittedEvent]) -> None:
        for event, extra in emitted:
            self.events.append(event)
            self.extra += [(event.type, dict(extra))] if extra else []

    def _tick(self) -> int:
        self._time += 1
        return self._time

    def show(self, *events: Any) -> "EventLog":
        for event in events:
            self.stream.emit_loop_event(event)
        return self

    def end(self, ending: Ending | None = None) -> list[AgentEvent]:
        self.stream.end(ending or Ending(code=0))
        assert validate(self.events) == []
        return self.events

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, *kinds: str) -> list[Any]:
        return [event for event in self.events if event.type in kinds]


def start() -> loop.LoopStart:
    return loop.LoopStart(loop_id=LOOP, agent_id="agent", session_id="s1")


def turn(*inside: Any, number: int = 0) -> list[Any]:
    begin = loop.TurnStart(loop_id=LOOP, turn=number, trigger="user")
    return [begin, *inside, loop.TurnEnd(loop_id=LOOP, turn=number, messages=())]


def end(status: Any = "completed", **known: Any) -> loop.LoopEnd:
    return loop.LoopEnd(loop_id=LOOP, status=status, **known)


def call(call_id: str, *effects_of_it: Any, command: str | None = None, text: str = "ok", failed: bool = False,
         updates: Sequence[tuple[str, OutputStream]] = ()) -> list[Any]:  # fmt: skip
    asked = ToolCall(call_id, "bash", {"command": command or "ls"})
    message = ToolMessage(tool_call_id=call_id, name="bash", content=(Text(text),), is_error=failed)
    return [
        loop.ToolCallStart(loop_id=LOOP, call_id=call_id, name="bash"),
        loop.ToolCalled(loop_id=LOOP, call=asked, shell_command=command),
        *[
            loop.ToolUpdate(loop_id=LOOP, call_id=call_id, name="bash", text=text, stream=stream)
            for text, stream in updates
        ],
        loop.ToolResulted(loop_id=LOOP, message=message, effects=effects_of_it, duration_ms=3),
        loop.ToolCallEnd(loop_id=LOOP, call_id=call_id, name="bash", status="error" if failed else "completed"),
    ]


# -- conformance


def test_projection_handles_every_loop_event() -> None:
    assert LoopProjection().mapped == frozenset(get_args(loop.LoopEvent))
    assert len(LoopProjection().mapped) == 35


@pytest.mark.slow
@given(conversations(), st.sampled_from(["yolo", "prompt", "deny"]), st.booleans())
def test_any_valid_run_emits_conforming_events(events: list[Any], approvals: ApprovalMode, interactive: bool) -> None:
    stream = EventLog(approvals, interactive=interactive).show(*events)
    stream.end()


@pytest.mark.slow
@given(conversations(), st.data(), st.booleans())
def test_interrupted_event_stream_conforms_so_far(events: list[Any], data: st.DataObject, interactive: bool) -> None:
    length = data.draw(st.integers(0, len(events)))
    stream = EventLog(interactive=interactive).show(*events[:length])
    assert validate(stream.events, complete=False) == []
    stream.end(data.draw(st.sampled_from([Ending(code=0), Ending(cause="abort"), Ending(signal=9), Ending(code=1)])))


@pytest.mark.slow
@given(conversations())
def test_no_tool_call_id_is_used_twice_in_a_stream(events: list[Any]) -> None:
    stream = EventLog().show(*events)
    ids = [event.tool_call_id for event in stream.of("tool_call_start")]
    assert len(ids) == len(set(ids))
    assert len(stream.of("tool_call_start")) >= len([e for e in events if isinstance(e, loop.ToolResulted)])
    stream.end()


# -- one by one


def test_text_is_emitted_once_whether_it_was_streamed_or_not() -> None:
    streamed = EventLog().show(
        start(),
        *turn(loop.TextDelta(loop_id=LOOP, text="Hel"), loop.TextDelta(loop_id=LOOP, text="lo"),
              loop.TextSaid(loop_id=LOOP, text="Hello"), *call("c1")),
        *turn(loop.TextDelta(loop_id=LOOP, text="Bye"), number=1),
        loop.Final(loop_id=LOOP, text="Bye"), end(),
    )  # fmt: skip
    whole = EventLog().show(
        start(), *turn(loop.TextSaid(loop_id=LOOP, text="Hello"), *call("c1")), *turn(number=1),
        loop.Final(loop_id=LOOP, text="Bye"), end(),
    )  # fmt: skip
    for stream in (streamed, whole):
        stream.end()
        assert [event.text for event in stream.of("message_stop")] == ["Hello", "Bye"]


def test_different_final_answer_is_emitted_after_the_text_of_the_last_turn() -> None:
    stream = EventLog().show(
        start(), *turn(loop.TextDelta(loop_id=LOOP, text="I am done")), loop.Final(loop_id=LOOP, text="42"), end()
    )
    stream.end()
    assert [event.text for event in stream.of("message_stop")] == ["I am done", "42"]


def test_each_model_call_is_a_step_and_each_loop_a_turn() -> None:
    delta = loop.TextDelta(loop_id=LOOP, text="a")
    stream = EventLog(interactive=True)
    for _ in range(2):
        stream.show(start(), *turn(delta), *turn(delta, number=1), loop.Final(loop_id=LOOP, text="a"), end())
    stream.end()
    assert [(event.turn_index, event.step_index) for event in stream.of("step_start")] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip


def test_tool_effects_become_file_events_after_the_result() -> None:
    done = (
        effects.FileRead("a"), effects.FileWritten("b", 3, True), effects.FileWritten("b", 3, False),
        effects.FilePatched("c", "@@"), effects.FileDeleted("d"),
    )  # fmt: skip
    stream = EventLog().show(start(), *turn(*call("c1", *done)), end())
    stream.end()
    kinds = stream.types()
    first = kinds.index("tool_result")
    assert kinds[first : first + 6] == [
        "tool_result", "file_read", "file_create", "file_write", "file_patch", "file_delete",
    ]  # fmt: skip


def test_a_command_is_shown_as_a_shell_with_its_output_and_its_exit() -> None:
    ran = effects.CommandRan(2, "one\ntwo\n", "oops")
    stream = EventLog().show(start(), *turn(*call("c1", ran, command="make", updates=[("one\n", "stdout")])), end())
    stream.end()
    assert [event.command for event in stream.of("shell_start")] == ["make"]
    assert "".join(event.delta for event in stream.of("shell_stdout_delta")) == "one\ntwo\n"
    assert [event.exit_code for event in stream.of("shell_exit")] == [2]


def test_streamed_output_is_not_repeated_in_the_result() -> None:
    ran = effects.CommandRan(0, "one\n", "oops\n")
    updates: list[tuple[str, OutputStream]] = [("oops\n", "stderr"), ("o", "stdout"), ("ne\n", "stdout")]
    stream = EventLog().show(start(), *turn(*call("c1", ran, command="make", updates=updates)), end())
    stream.end()
    deltas = [(event.type, event.delta) for event in stream.of("shell_stdout_delta", "shell_stderr_delta")]
    assert deltas == [("shell_stderr_delta", "oops\n"), ("shell_stdout_delta", "o"), ("shell_stdout_delta", "ne\n")]


def test_denied_command_emits_no_shell_events() -> None:
    stream = EventLog("prompt").show(
        start(), *turn(*call("c1", command="rm -rf /", text="refused", failed=True)), end()
    )
    stream.end()
    assert stream.of("shell_start") == []
    assert [event.error for event in stream.of("tool_error")] == ["refused"]


def test_reused_call_id_is_a_new_call() -> None:
    stream = EventLog().show(start(), *turn(*call("c1")), *turn(*call("c1"), number=1), end())
    stream.end()
    assert [event.tool_call_id for event in stream.of("tool_result")] == ["c1", "c1~2"]


def test_abandoned_answer_is_closed_before_the_retry() -> None:
    stream = EventLog().show(
        start(),
        loop.TurnStart(loop_id=LOOP, turn=0, trigger="user"),
        loop.TextDelta(loop_id=LOOP, text="Hel"),
        loop.ToolInputDelta(loop_id=LOOP, call_id="c1", name="bash", delta="{"),
        loop.MessageAbandoned(loop_id=LOOP),
        loop.Retrying(loop_id=LOOP, attempt=2, max_attempts=4, kind="rate_limited", message="slower", delay=1.5),
        *call("c1"),
        loop.TurnEnd(loop_id=LOOP, turn=0, messages=()),
        end(),
    )
    stream.end()
    kinds = stream.types()
    assert [(event.text, event.abandoned) for event in stream.of("message_stop")] == [("Hel", True)]
    assert kinds.index("tool_error") < kinds.index("rate_limited") < kinds.index("message_stop") < kinds.index("retry")
    assert [(event.attempt, event.max_attempts, event.delay_ms) for event in stream.of("retry")] == [(1, 3, 1500)]
    assert [event.tool_call_id for event in stream.of("tool_result")] == ["c1~2"]


def test_usage_is_per_call_and_cost_is_a_running_total_over_all_loops() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    reported = loop.UsageReported(loop_id=LOOP, usage=usage, total=usage)
    stream = EventLog(interactive=True)
    for _ in range(2):
        stream.show(start(), *turn(reported), end(usage=usage))
    events = stream.end()
    assert [event.input_tokens for event in stream.of("token_usage")] == [10, 10]
    assert [event.cost.total_usd for event in stream.of("cost")] == [0.5, 1.0]
    last: Any = events[-1]
    assert last.cost.total_usd == 1.0


def test_handoff_continues_the_turn_with_the_next_loop() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    reported = loop.UsageReported(loop_id=LOOP, usage=usage, total=usage)
    handed_off = loop.HandedOff(loop_id=LOOP, call_id="c1", source="build", target="reviewer", message="check it")
    stream = EventLog().show(
        start(), *turn(reported, handed_off), end(usage=usage, handed_off_to="reviewer"),
        start(), *turn(reported), loop.Final(loop_id=LOOP, text="fine"), end(usage=usage),
    )  # fmt: skip
    last: Any = stream.end()[-1]
    assert last.cost.total_usd == 1.0
    assert stream.types().count("turn_start") == stream.types().count("turn_end") == 1
    assert [event.text for event in stream.of("message_stop")] == ["fine"]
    assert [event.message for event in stream.of("debug")] == ["build hands off to reviewer: check it"]


FAILURES: list[tuple[str, str, Callable[[Any], bool]]] = [
    ("auth", "auth_error", lambda e: "KEY" in e.guidance),
    ("rate_limited", "rate_limit_error", lambda e: e.retry_after_ms == 2500),
    ("context_exceeded", "context_exceeded", lambda e: (e.used_tokens, e.max_tokens) == (90, 100)),
    ("network", "error", lambda e: e.code == "NETWORK_ERROR"),
    ("provider", "error", lambda e: e.code == "AGENT_CRASH"),
    ("quota", "rate_limit_error", lambda e: e.retry_after_ms == 2500),
    ("filtered", "error", lambda e: e.code == "CONTENT_FILTERED"),
    ("empty", "error", lambda e: e.code == "EMPTY_ANSWER"),
    ("internal", "error", lambda e: e.code == "INTERNAL"),
]


@pytest.mark.parametrize(("kind", "event_type", "holds"), FAILURES)
def test_an_error_of_the_model_ends_the_run_with_the_event_of_its_kind(
    kind: Any, event_type: str, holds: Callable[[Any], bool]
) -> None:
    filling = loop.ContextFilling(loop_id=LOOP, used_tokens=90, max_tokens=100)
    stream = EventLog().show(start(), *turn(filling), end("failed", error="no", error_kind=kind, retry_after=2.5))
    stream.end()
    [event] = stream.of(event_type)
    assert holds(event)


@pytest.mark.parametrize(
    ("limit", "reason", "code"),
    [
        ("turns", "turn_limit", "TURN_LIMIT"),
        ("iterations", "turn_limit", "TURN_LIMIT"),
        ("cost", "budget", "BUDGET_EXCEEDED"),
        ("tokens", "budget", "BUDGET_EXCEEDED"),
        ("duration", "failed", "TIMEOUT"),
        ("repetition", "failed", "LOOP_DETECTED"),
    ],
)
def test_a_limit_ends_the_run_with_its_own_reason(limit: Any, reason: str, code: str) -> None:
    reached = loop.LimitReached(loop_id=LOOP, limit=limit, reason="enough")
    stream = EventLog().show(start(), *turn(), reached, end("limited", turns=3))
    stream.end()
    verdict = stream.stream.verdict
    assert verdict is not None
    assert verdict.failure is not None
    assert (verdict.exit_reason, verdict.failure.code) == (reason, code)


def test_cut_answer_completes_with_its_stop_reason() -> None:
    reached = loop.LimitReached(loop_id=LOOP, limit="output", reason="enough")
    stream = EventLog().show(start(), *turn(), reached, end("limited", limit="output"))
    stream.end()
    assert [event.stop_reason for event in stream.of("turn_end")] == ["length"]
    assert stream.stream.verdict is not None
    assert stream.stream.verdict.exit_reason == "completed"


def test_the_other_ways_to_end() -> None:
    for status, reason in (("completed", "completed"), ("aborted", "interrupted"), ("rejected", "failed")):
        stream = EventLog().show(start(), *turn(), end(status, rejection="not that"))
        stream.end()
        assert stream.stream.verdict is not None
        assert stream.stream.verdict.exit_reason == reason


def test_conversation_continues_after_a_failed_turn() -> None:
    delta = loop.TextDelta(loop_id=LOOP, text="a")
    stream = EventLog(interactive=True)
    stream.show(start(), *turn(), end("failed", error="no", error_kind="network"), start(), *turn(delta), end())
    stream.end()
    assert [event.recoverable for event in stream.of("error")] == [True]
    assert stream.stream.verdict is not None
    assert stream.stream.verdict.exit_reason == "completed"


def test_notes_become_debug_events_or_their_own_event() -> None:
    stream = EventLog().show(
        start(),
        loop.InputWarning(loop_id=LOOP, message="odd"),
        *turn(
            loop.MessageInjected(loop_id=LOOP, message=user("faster", origin="steering")),
            loop.ToolProgress(loop_id=LOOP, call_id="c1", name="bash", text="half"),
            loop.ContextFilling(loop_id=LOOP, used_tokens=90, max_tokens=100),
            loop.ContextCompacted(loop_id=LOOP, tier="summary", tokens_before=90, tokens_after=30, summary="short"),
            loop.BudgetExceeded(loop_id=LOOP, budget="tool_calls", limit=1, used=2, tool="bash"),
            loop.HookFailed(loop_id=LOOP, hook="tool:gate", error="oops"),
            loop.Noted(loop_id=LOOP, text="a skill was passed over"),
        ),
        end(),
    )
    stream.end()
    assert [event.message for event in stream.of("debug")] == [
        "prompt warning: odd",
        "steering message: faster",
        "bash: half",
        "budget exceeded: 2 calls of bash, limit 1",
        "hook tool:gate failed: oops",
        "a skill was passed over",
    ]
    assert [event.pct_used for event in stream.of("context_limit_warning")] == [90.0]
    assert [(event.summary, event.tokens_saved) for event in stream.of("context_compacted")] == [("short", 60)]


def test_call_with_a_replaced_id_continues_the_streamed_call() -> None:
    streamed = loop.ToolInputDelta(loop_id=LOOP, call_id="c1", name="bash", delta="{}")
    stream = EventLog().show(start(), *turn(streamed, *call("c1")), *turn(streamed, *call("new"), number=1), end())
    stream.end()
    assert stream.of("tool_error") == []
    assert [event.tool_call_id for event in stream.of("tool_result")] == ["c1", "c1~2"]


@pytest.mark.parametrize(("text", "messages"), [("It is a.", ["It is a.", '{"a":1}']), ('{ "a": 1 }', ['{ "a": 1 }'])])
def test_a_structured_answer_is_the_last_message_and_stands_in_the_turn_end(text: str, messages: list[str]) -> None:
    stream = EventLog().show(
        start(), *turn(loop.TextDelta(loop_id=LOOP, text=text)), loop.OutputProduced(loop_id=LOOP, value={"a": 1}),
        loop.Final(loop_id=LOOP, text=text, output={"a": 1}), end(),
    )  # fmt: skip
    stream.end()
    assert [event.text for event in stream.of("message_stop")] == messages
    assert ("turn_end", {"structuredOutput": {"a": 1}}) in stream.extra


def test_session_start_contains_session_model_and_history() -> None:
    stream = EventLog()
    stream.stream.emit(facts.SessionKnown("s1", resumed=True, forked_from="s0", prior_turns=4, model="m"))
    stream.stream.emit(facts.AgentdocRead("AGENTS.md"), facts.SkillLoaded("pdf", "skills/pdf"))
    stream.show(start(), *turn(), end())
    stream.end()
    assert stream.types()[:5] == ["session_start", "session_resume", "session_fork", "agentdoc_read", "skill_loaded"]
    last: Any = stream.events[-1]
    assert last.turn_count == 5
