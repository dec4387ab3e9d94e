"""Events in, cards out."""

import json
from typing import Any

import pytest

from agent_mux import events as ev
from agent_mux.events import ALL_EVENTS, Accumulated, BaseEvent, CostRecord, QuotaWindow
from agent_mux.views import (
    AnyCard,
    ApprovalCard,
    CostCard,
    ErrorCard,
    MessageCard,
    NoticeCard,
    QuestionCard,
    SubagentCard,
    ThinkingCard,
    Timeline,
    ToolCard,
    card_to_dict,
    cards_of,
)
from agent_mux.views.timeline import _HANDLERS

WHO = ("0" * 26, "claude", 1)
SEEN = Accumulated.of("so far")
COST = CostRecord(total_usd=0.5, input_tokens=10, output_tokens=2)


def message(*deltas: str, **inside: Any) -> list[BaseEvent]:
    return [
        ev.MessageStartEvent(*WHO, **inside),
        *(ev.TextDeltaEvent(*WHO, delta, SEEN, **inside) for delta in deltas),
        ev.MessageStopEvent(*WHO, "".join(deltas), **inside),
    ]


def call(name: str, given: Any, key: str = "t", **inside: Any) -> list[BaseEvent]:
    return [
        ev.ToolCallStartEvent(*WHO, key, name, "", **inside),
        ev.ToolCallReadyEvent(*WHO, key, name, given, **inside),
    ]


def only(timeline: Timeline, kind: type[Any]) -> Any:
    (card,) = [card for card in timeline if isinstance(card, kind)]
    return card


def shown(timeline: Timeline) -> list[AnyCard]:
    return [card for card in timeline if card.kind not in {"status", "cost"}]


def test_message_grows_and_each_delta_changes_its_card_once() -> None:
    timeline = Timeline()
    start, first, second, stop = message("Hel", "lo")
    timeline.feed(start)
    (card,) = timeline.feed(first)
    assert isinstance(card, MessageCard)
    assert (str(card.text), card.state, card.is_open) == ("Hel", "streaming", True)
    assert [changed.kind for changed in timeline.feed(second)] == ["message"]
    assert [changed.kind for changed in timeline.feed(stop)] == ["message", "status"]
    assert (str(card.text), card.state, card.is_open, card.version) == ("Hello", "done", False, 3)


def test_text_that_was_not_streamed_comes_from_the_end_of_the_message() -> None:
    timeline = cards_of([ev.MessageStartEvent(*WHO), ev.MessageStopEvent(*WHO, "whole", abandoned=True)])
    card = only(timeline, MessageCard)
    assert (str(card.text), card.state) == ("whole", "abandoned")


def test_thinking_is_a_card() -> None:
    timeline = cards_of(
        [ev.ThinkingStartEvent(*WHO, "high"), ev.ThinkingDeltaEvent(*WHO, "hm", SEEN), ev.ThinkingStopEvent(*WHO, "hm")]
    )
    card = only(timeline, ThinkingCard)
    assert (str(card.text), card.effort, card.state) == ("hm", "high", "done")


def test_command_has_its_output_its_exit_code_and_the_reason_of_its_failure() -> None:
    timeline = cards_of(
        [
            *call("Bash", {"command": "sleep 60"}),
            ev.ShellStartEvent(*WHO, "sleep 60", "/w"),
            ev.ShellStdoutDeltaEvent(*WHO, "one\n"),
            ev.ShellStderrDeltaEvent(*WHO, "  two"),
            ev.ShellExitEvent(*WHO, -1, 7),
            ev.ToolErrorEvent(*WHO, "t", "Bash", "Blocked: standalone sleep"),
        ]
    )
    card = only(timeline, ToolCard)
    assert (card.command, card.cwd, str(card.output)) == ("sleep 60", "/w", "one\n  two")
    assert (card.state, card.exit_code, card.duration_ms) == ("failed", -1, 7)
    assert card.error == "Blocked: standalone sleep"


def test_output_of_overlapping_commands_comes_from_their_results() -> None:
    timeline = cards_of(
        [
            *call("Bash", {"command": "one"}, "a"),
            ev.ShellStartEvent(*WHO, "one", "/"),
            *call("Bash", {"command": "two"}, "b"),
            ev.ShellStartEvent(*WHO, "two", "/"),
            ev.ShellStdoutDeltaEvent(*WHO, "of whom?"),
            ev.ShellExitEvent(*WHO, 3, 5),
            ev.ToolErrorEvent(*WHO, "b", "Bash", "two failed"),
            ev.ShellExitEvent(*WHO, 0, 9),
            ev.ToolResultEvent(*WHO, "a", "Bash", "result of one", 9),
        ]
    )
    one, two = (card for card in timeline if isinstance(card, ToolCard))
    assert (one.command, str(one.output), one.exit_code) == ("one", "result of one", 0)
    assert (two.command, str(two.output), two.exit_code, two.error) == ("two", "", 3, "two failed")


def test_commands_one_after_the_other_in_parallel_calls_keep_their_output() -> None:
    timeline = cards_of(
        [
            *call("Bash", {"command": "one"}, "a"),
            *call("Bash", {"command": "two"}, "b"),
            *(
                event
                for key, name in (("b", "two"), ("a", "one"))
                for event in (
                    ev.ShellStartEvent(*WHO, name, "/"),
                    ev.ShellStdoutDeltaEvent(*WHO, name),
                    ev.ShellExitEvent(*WHO, 0, 5),
                    ev.ToolResultEvent(*WHO, key, "Bash", "", 5),
                )
            ),
        ]
    )
    assert [str(card.output) for card in timeline if isinstance(card, ToolCard)] == ["one", "two"]


def test_diff_belongs_to_the_call_that_names_the_file() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    timeline = cards_of(
        [
            *call("Edit", {"file_path": "/w/x"}, "a"),
            *call("Read", {"file_path": "/w/y"}, "b"),
            ev.ToolResultEvent(*WHO, "a", "Edit", "ok", 1),
            ev.ToolResultEvent(*WHO, "b", "Read", "text", 1),
            ev.FilePatchEvent(*WHO, "/w/x", diff),
            ev.FileReadEvent(*WHO, "/w/y"),
        ]
    )
    edit, read = (card for card in timeline if isinstance(card, ToolCard))
    assert [(file.path, file.action, file.diff) for file in edit.files] == [("/w/x", "changed", diff)]
    assert [(file.path, file.action) for file in read.files] == [("/w/y", "read")]
    assert str(read.output) == "text"


def test_mcp_call_names_its_server() -> None:
    timeline = cards_of(
        [
            ev.McpToolCallStartEvent(*WHO, "m", "db", "query", {"q": 1}),
            ev.McpToolResultEvent(*WHO, "m", "db", "query", [{"type": "text", "text": "row"}, {"type": "image"}]),
        ]
    )
    card = only(timeline, ToolCard)
    assert (card.server, card.tool_name, card.state, str(card.output)) == ("db", "query", "succeeded", "row\n[image]")


def ask(key: str | None = "t") -> BaseEvent:
    return ev.ApprovalRequestEvent(*WHO, "i", "Run", "rm x", "high", tool_call_id=key, command="rm x")


def test_denial_is_marked_at_the_call_and_survives_its_error() -> None:
    timeline = Timeline()
    for event in [*call("Bash", {"command": "rm x"}), ask()]:
        timeline.feed(event)
    card = only(timeline, ToolCard)
    assert (card.state, card.decision) == ("waiting", "pending")
    timeline.feed(ev.ApprovalDeniedEvent(*WHO, "i", "not here"))
    timeline.feed(ev.ToolErrorEvent(*WHO, "t", "Bash", "User refused"))
    assert (card.state, card.decision, card.denial_reason, card.error) == (
        "denied", "denied", "not here", "User refused",
    )  # fmt: skip
    assert only(timeline, ApprovalCard).state == "denied"


def test_granted_call_runs_on() -> None:
    timeline = cards_of([*call("Bash", {"command": "rm x"}), ask(), ev.ApprovalGrantedEvent(*WHO, "i")])
    assert only(timeline, ToolCard).state == "running"
    assert only(timeline, ApprovalCard).state == "granted"


def test_denial_without_request_is_related_to_the_only_running_call() -> None:
    denied = ev.ApprovalDeniedEvent(*WHO, "i", "mode deny")
    alone = cards_of([*call("Bash", {}), denied])
    assert only(alone, ToolCard).state == "denied"
    several = cards_of([*call("Bash", {}, "a"), *call("Bash", {}, "b"), denied])
    assert [card.state for card in several if isinstance(card, ToolCard)] == ["running", "running"]
    assert only(several, ApprovalCard).reason == "mode deny"


def test_request_before_its_call_is_related_to_it() -> None:
    denied = cards_of([ask(), ev.ApprovalDeniedEvent(*WHO, "i", "no"), *call("Bash", {})])
    assert (only(denied, ToolCard).state, only(denied, ToolCard).denial_reason) == ("denied", "no")
    granted = cards_of([ask(), *call("Bash", {}), ev.ApprovalGrantedEvent(*WHO, "i")])
    assert (only(granted, ToolCard).state, only(granted, ToolCard).decision) == ("running", "granted")


def test_denial_after_the_end_of_its_call_marks_the_call() -> None:
    aborted = ev.ToolErrorEvent(*WHO, "t", "Bash", "aborted")
    timeline = cards_of([*call("Bash", {}), ask(), aborted, ev.ApprovalDeniedEvent(*WHO, "i", "the turn ended")])
    assert only(timeline, ToolCard).state == "denied"


def test_subagent_counts_its_calls_and_keeps_its_inside_apart() -> None:
    inside = {"subagent_id": "s"}
    timeline = cards_of(
        [
            ev.MessageStartEvent(*WHO),
            ev.SubagentSpawnEvent(*WHO, agent_name="Explore", prompt="find", **inside),
            *message("inner", **inside),
            *call("Grep", {"pattern": "x"}, "g", **inside),
            ev.TextDeltaEvent(*WHO, "outer", SEEN),
            ev.SubagentResultEvent(*WHO, agent_name="Explore", summary="found", cost=COST, **inside),
        ]
    )
    agent = only(timeline, SubagentCard)
    assert (agent.state, agent.summary, agent.tool_calls, agent.cost) == ("succeeded", "found", 1, COST)
    assert [(str(card.text), card.subagent_id) for card in timeline if isinstance(card, MessageCard)] == [
        ("outer", None),
        ("inner", "s"),
    ]


def test_question_closes_when_the_agent_continues() -> None:
    timeline = Timeline()
    timeline.feed(ev.TurnStartEvent(*WHO, 0))
    timeline.feed(ev.InputRequiredEvent(*WHO, "i", "which?", "agent", "context"))
    question = only(timeline, QuestionCard)
    assert question.is_open
    assert timeline.status is not None
    assert timeline.status.activity == "waiting"
    changed = timeline.feed(ev.MessageStartEvent(*WHO))
    assert question in changed
    assert not question.is_open
    assert timeline.status.activity == "working"


def test_status_follows_the_events() -> None:
    timeline = Timeline()
    seen = []
    for event in [
        ev.SessionStartEvent(*WHO, "S1", False, agent_version="2.1"),
        ev.TurnStartEvent(*WHO, 0),
        *call("Bash", {"command": "rm x"}),
        ask(),
        ev.ApprovalGrantedEvent(*WHO, "i"),
        ev.RateLimitedEvent(*WHO, 5),
        ev.ToolResultEvent(*WHO, "t", "Bash", "", 1),
        ev.PausedEvent(*WHO),
        ev.ResumedEvent(*WHO),
        ev.TokenUsageEvent(*WHO, 5, 2),
        ev.TokenUsageEvent(*WHO, 0, 0, quota=(QuotaWindow("five_hour", 0.4),)),
        ev.TokenUsageEvent(*WHO, 5, 2),
        ev.CostEvent(*WHO, COST),
        ev.TurnEndEvent(*WHO, 0),
        ev.SessionEndEvent(*WHO, "S1", 1),
    ]:
        timeline.feed(event)
        assert timeline.status is not None
        seen.append(timeline.status.activity)
    assert seen == [
        "starting", "working", "working", "working", "waiting", "working", "delayed", "working", "paused", "working",
        "working", "working", "working", "working", "idle", "ended",
    ]  # fmt: skip
    status = timeline.status
    assert status is not None
    assert (status.session_id, status.agent_version, status.turns) == ("S1", "2.1", 1)
    assert (status.input_tokens, status.output_tokens, status.cost) == (10, 4, COST)
    assert [window.used_fraction for window in status.quota] == [0.4]
    assert not status.is_open


def test_status_names_what_runs_now() -> None:
    timeline = Timeline()
    running = []
    for event in [
        *call("Bash", {}, "a"),
        *call("Bash", {}, "b"),
        ev.ToolResultEvent(*WHO, "a", "Bash", "", 1),
        *message("done")[:1],
    ]:
        timeline.feed(event)
        assert timeline.status is not None
        running.append([card.kind for card in map(timeline.get, timeline.status.running) if card is not None])
    assert running == [["tool"], ["tool"], ["tool"] * 2, ["tool"] * 2, ["tool"], ["message", "tool"]]


def test_fallback_changes_agent_and_model_of_the_status() -> None:
    retry = ev.RetryEvent(*WHO, 1, 2, "rate_limited", 0, next_agent="codex", next_model="gpt-5")
    timeline = cards_of([ev.RateLimitErrorEvent(*WHO, "too many"), retry])
    assert timeline.status is not None
    assert (timeline.status.agent, timeline.status.model, timeline.status.ended_by) == ("codex", "gpt-5", None)


@pytest.mark.parametrize(
    ("event", "code", "message_"),
    [
        (ev.ErrorEvent(*WHO, "NETWORK_ERROR", "no route", False), "NETWORK_ERROR", "no route"),
        (ev.CrashEvent(*WHO, -9, ""), "crash", "the agent ended with exit code -9"),
        (ev.CrashEvent(*WHO, 1, "unknown option"), "crash", "unknown option"),
        (ev.TimeoutEvent(*WHO, "inactivity"), "timeout", "the inactivity limit was reached"),
        (ev.TurnLimitEvent(*WHO, 3), "turn_limit", "the limit of 3 model calls was reached"),
        (ev.ContextExceededEvent(*WHO, 0, 0), "context_exceeded", "the context window is full"),
        (ev.AuthErrorEvent(*WHO, "401", "log in"), "auth_error", "401"),
        (ev.AbortedEvent(*WHO), "aborted", "the run was aborted"),
    ],
)
def test_failures_are_error_cards_and_end_the_status(event: BaseEvent, code: str, message_: str) -> None:
    timeline = cards_of([event])
    card = only(timeline, ErrorCard)
    assert (card.code, card.message, card.is_open) == (code, message_, False)
    assert timeline.status is not None
    assert timeline.status.ended_by == event.type


def test_recoverable_error_does_not_end_the_status() -> None:
    timeline = cards_of([ev.ErrorEvent(*WHO, "PARSE_ERROR", "odd line", True)])
    assert only(timeline, ErrorCard).recoverable
    assert timeline.status is not None
    assert timeline.status.ended_by is None


def test_cost_is_one_card_with_the_latest_figures() -> None:
    more = CostRecord(total_usd=0.9, input_tokens=1, output_tokens=1)
    assert only(cards_of([ev.CostEvent(*WHO, COST), ev.CostEvent(*WHO, more)]), CostCard).cost == more


def test_every_event_is_handled_or_changes_the_status_only() -> None:
    without_card = {
        "session_resume", "session_fork", "session_checkpoint", "turn_end", "step_start", "step_end", "plugin_loaded",
        "plugin_invoked", "skill_loaded", "agentdoc_read", "image_input_ack", "token_usage",
    }  # fmt: skip
    assert {kind.type for kind in ALL_EVENTS} == set(_HANDLERS) | without_card
    assert without_card.isdisjoint(_HANDLERS)


def test_number_of_cards_and_size_of_texts_are_bounded() -> None:
    timeline = Timeline(max_cards=10)
    timeline.feed(call("Bash", {"command": "long"})[0])
    for number in range(100):
        for event in message(f"{number}"):
            timeline.feed(event)
    assert len(timeline) == 10
    assert timeline.dropped == 92  # 100 messages, the status and the call, which is open, are 102
    assert only(timeline, ToolCard).is_open
    for _ in range(50):
        timeline.feed(ev.ToolInputDeltaEvent(*WHO, "t", "x" * 100_000, SEEN))
    kept = only(timeline, ToolCard).input_text
    assert len(kept.head) + len(kept.tail) <= 40_000
    assert kept.characters == 5_000_000


def test_json_form_is_a_copy_with_a_tag() -> None:
    timeline = cards_of([*message("a"), ev.LogEvent(*WHO, "stderr", "noise")])
    plain = card_to_dict(only(timeline, MessageCard))
    assert plain == {
        "kind": "message", "id": "message-1", "agent": "claude", "startedAt": 1, "endedAt": 1, "version": 2,
        "state": "done", "text": "a",
    }  # fmt: skip
    notice = card_to_dict(only(timeline, NoticeCard))
    assert notice["event"] == {
        "type": "log", "runId": "0" * 26, "agent": "claude", "timestamp": 1, "source": "stderr", "line": "noise",
    }  # fmt: skip
    assert json.dumps([card_to_dict(card) for card in timeline])


def test_duration_of_a_command_is_without_the_time_until_it_started() -> None:
    timeline = cards_of(
        [
            *call("Bash", {"command": "ls"}),
            ev.ShellStartEvent(*WHO, "ls", "/w"),
            ev.ShellExitEvent(*WHO, 0, 150),
            ev.ToolResultEvent(*WHO, "t", "Bash", "", 18_200),  # with the time for which its approval was pending
        ]
    )
    assert only(timeline, ToolCard).duration_ms == 150
