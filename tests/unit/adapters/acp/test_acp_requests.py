"""Permissions and questions: how they are shown, and what each reply is."""

from typing import Any

import pytest
from acp_transcript import ALLOW_OR_NOT, CANCEL, OWN, AcpConversation, new_codec, receive
from tests.unit.adapters.codec_conversation import facts_of

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Interrupt, Refuse, Source
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuestion, AcpQuirks, ToolReader, choice_question

SHELL = {"title": "rm x", "kind": "execute", "status": "pending", "rawInput": {"command": "rm x"}}
ASKED = facts.ApprovalRequested(
    "0", "Run a command", "rm x", "high", "execute", "call-1", "rm x", (), {"command": "rm x"}
)
END = {"stopReason": "end_turn"}


def selected(request_id: Any, option: str) -> dict[str, Any]:
    return {"id": request_id, "result": {"outcome": {"outcome": "selected", "optionId": option}}}


def cancelled(request_id: Any) -> dict[str, Any]:
    return {"id": request_id, "result": {"outcome": {"outcome": "cancelled"}}}


def test_a_permission_is_shown_with_its_call() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    assert talk.facts() == [
        facts.StepBegin(),
        facts.ToolReady("call-1", "execute", {"command": "rm x"}, facts.ShellInvocation("rm x")),
        ASKED,
    ]


@pytest.mark.parametrize(
    ("action", "option"),
    [
        (ApproveAction("0"), "once"),
        (ApproveAction("0", always=True), "always"),
        (DenyAction("0", "no"), "no"),
    ],
)
def test_the_reply_is_the_option_of_its_kind(action: Any, option: str) -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.request(action)
    assert talk.sent() == [selected(0, option)]
    is_yes = isinstance(action, ApproveAction)
    assert talk.facts(facts.RequestResolved) == [facts.RequestResolved("0", is_yes, None if is_yes else "no")]
    [refusal] = talk.request(action)
    assert isinstance(refusal, Refuse)
    assert refusal.code == "INTERACTION_NOT_FOUND"


def test_without_an_option_for_it_approval_falls_back_and_denial_cancels() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "a", options=[ALLOW_OR_NOT[0]], **SHELL)
    talk.asks_permission(1, "b", options=[ALLOW_OR_NOT[1]], **SHELL)
    talk.asks_permission(2, "c", options=[], **SHELL)
    talk.asks_permission(3, "d", options=[{"optionId": "go", "name": "Go"}], **SHELL)
    talk.asks_permission(4, "e", options=[], **SHELL)
    for action in (
        ApproveAction("0", always=True),
        ApproveAction("1"),
        DenyAction("2"),
        ApproveAction("3"),
        ApproveAction("4"),
    ):
        talk.request(action)
    assert talk.sent() == [selected(0, "once"), selected(1, "always"), cancelled(2), selected(3, "go"), cancelled(4)]
    assert [settled.granted for settled in talk.facts(facts.RequestResolved)] == [True, True, False, True, False]


def test_the_agents_ids_are_its_own_whatever_they_are() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission("3", "a", **SHELL)
    talk.asks_permission(3, "b", **SHELL)
    talk.request(ApproveAction('"3"'))
    talk.request(DenyAction("3"))
    assert talk.sent() == [selected("3", "once"), selected(3, "no")]


def test_a_change_is_shown_as_its_diff() -> None:
    talk = AcpConversation().prompted()
    diff = {"type": "diff", "path": "/home/dev/project/a.txt", "oldText": "one\n", "newText": "two\n"}
    talk.asks_permission(0, "call-1", title="Edit a.txt", kind="edit", content=[diff])
    [asked] = talk.facts(facts.ApprovalRequested)
    assert asked.action == "Change files"
    assert asked.detail.splitlines()[0] == "Edit a.txt"
    assert asked.detail.endswith("@@ -1,1 +1,1 @@\n-one\n+two\n")


@pytest.mark.parametrize(
    ("call", "detail", "risk"),
    [
        ({"title": "Look", "kind": "read", "content": [{"type": "content", "content": {"text": "why"}}]},
         "Look\nwhy", "low"),
        ({"title": "Remove", "kind": "delete"}, "Remove", "high"),
        ({"title": "Use it", "kind": "other", "rawInput": {"a": 1}}, 'Use it\n{"a":1}', "medium"),
        ({}, "", "medium"),
    ],
)  # fmt: skip
def test_other_permissions_show_the_reported_fields(call: Any, detail: str, risk: str) -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **call)
    [asked] = talk.facts(facts.ApprovalRequested)
    assert (asked.detail, asked.risk) == (detail, risk)


def test_permission_extends_a_known_call() -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("tool_call", toolCallId="call-1", title="bash", kind="execute", status="pending", rawInput={})
    talk.asks_permission(0, "call-1", **SHELL)
    assert talk.facts(facts.ToolReady) == [
        facts.ToolReady("call-1", "bash", {"command": "rm x"}, facts.ShellInvocation("rm x"))
    ]
    assert len(talk.facts(facts.StepBegin)) == 1


def test_denied_call_without_updates_ends_with_the_next_message() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.request(DenyAction("0", "not now"))
    assert not talk.facts(facts.ToolDone)
    talk.speaks("All right.")
    assert talk.facts(facts.ToolDone) == [facts.ToolDone("call-1", error="not now", name="execute")]


def test_a_denied_call_ends_with_the_agents_own_words_where_it_has_some() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.request(DenyAction("0", "not now"))
    shown = [{"type": "content", "content": {"type": "text", "text": "rejected"}}]
    talk.receive_update("tool_call_update", toolCallId="call-1", status="failed", content=shown)
    assert talk.facts(facts.ToolDone) == [facts.ToolDone("call-1", error="rejected", name="execute")]


def test_an_interruption_answers_what_is_open_and_what_comes_after_it() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.request(Interrupt())
    assert talk.sent() == [CANCEL, cancelled(0)]
    talk.asks_permission(1, "call-2", **SHELL)
    talk.receive_request(2, "elicitation/create", mode="form", message="?", requestedSchema={"type": "object"})
    assert talk.sent() == [cancelled(1), {"id": 2, "result": {"action": "cancel"}}]
    assert len(talk.facts(facts.ApprovalRequested)) == 1
    talk.receive_response(3, {"stopReason": "cancelled"})
    assert [type(fact) for fact in talk.facts()[-3:]] == [facts.RequestResolved, facts.ToolDone, facts.TurnStopped]


def test_open_requests_are_settled_when_the_turn_ends() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.receive_response(3, END)
    assert talk.facts(facts.RequestResolved) == [facts.RequestResolved("0", granted=False, reason="the turn ended")]
    assert talk.sent() == [cancelled(0)]


def test_the_agent_can_withdraw_a_request() -> None:
    talk = AcpConversation().prompted()
    talk.asks_permission(0, "call-1", **SHELL)
    talk.receive({"method": "$/cancel_request", "params": {"requestId": 0}})
    [settled] = talk.facts(facts.RequestResolved)
    assert (settled.granted, settled.reason) == (False, "x withdrew the request")
    emitted = talk.receive({"method": "$/cancel_request", "params": {"requestId": 0}})
    assert isinstance(emitted[0], facts.Ignored)


FORM = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "title": "Color", "oneOf": [{"const": "r", "title": "Red"}]},
        "count": {"type": "integer", "description": "how many"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "note": {"type": "string"},
    },
    "required": ["color", "count", "sure", "tags"],
}


def test_a_form_is_one_question_for_each_field_answered_together() -> None:
    talk = AcpConversation().prompted()
    talk.receive_request(7, "elicitation/create", mode="form", message="Tell me", requestedSchema=FORM)
    assert talk.facts(facts.InputRequested)[:2] == [
        facts.InputRequested("7/color", "Color", "Tell me", ("Red",)),
        facts.InputRequested("7/count", "count", "how many"),
    ]
    for name, answer in (("color", "Red"), ("count", "3"), ("sure", "yes"), ("tags", "a, b")):
        talk.request(AnswerAction(f"7/{name}", answer))
    assert talk.sent() == []
    talk.request(DenyAction("7/note"))
    content = {"color": "r", "count": 3, "sure": True, "tags": ["a", "b"]}
    assert talk.sent() == [{"id": 7, "result": {"action": "accept", "content": content}}]
    assert [settled.granted for settled in talk.facts(facts.RequestResolved)] == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("name", "answer", "allowed"),
    [("color", "Blue", "Red"), ("count", "many", "a integer"), ("sure", "perhaps", "a boolean"), ("tags", "c", "a, b")],
)
def test_an_answer_that_does_not_fit_is_refused(name: str, answer: str, allowed: str) -> None:
    talk = AcpConversation().prompted()
    talk.receive_request(7, "elicitation/create", mode="form", message="Tell me", requestedSchema=FORM)
    [refusal] = talk.request(AnswerAction(f"7/{name}", answer))
    assert isinstance(refusal, Refuse)
    assert refusal.message.endswith(f"allowed: {allowed}")


def test_a_form_can_be_declined_and_cannot_be_approved() -> None:
    talk = AcpConversation().prompted()
    talk.receive_request(7, "elicitation/create", mode="form", message="Tell me", requestedSchema=FORM)
    [refusal] = talk.request(ApproveAction("7/color"))
    assert isinstance(refusal, Refuse)
    talk.request(DenyAction("7/color"))
    assert talk.sent()[1:] == [{"id": 7, "result": {"action": "decline"}}]
    assert len(talk.facts(facts.RequestResolved)) == len(FORM["properties"])  # type: ignore[arg-type]


@pytest.mark.parametrize(("answer", "result"), [("yes", {"action": "accept", "content": {}}),
                                                ("no", {"action": "decline"})])  # fmt: skip
def test_a_form_without_fields_asks_for_consent(answer: str, result: Any) -> None:
    talk = AcpConversation().prompted()
    talk.receive_request(7, "elicitation/create", mode="form", message="Sure?", requestedSchema={"type": "object"})
    assert talk.facts(facts.InputRequested) == [facts.InputRequested("7", "Sure?", None, ("yes", "no"))]
    talk.request(AnswerAction("7", answer))
    assert talk.sent() == [{"id": 7, "result": result}]


def test_a_link_is_an_approval() -> None:
    talk = AcpConversation().prompted()
    for number in (7, 8):
        talk.receive_request(
            number, "elicitation/create", mode="url", message="Log in", url="https://x/", elicitationId="e"
        )
    assert talk.facts(facts.ApprovalRequested)[0].detail == "Log in\nhttps://x/"
    talk.request(ApproveAction("7"))
    talk.request(DenyAction("8"))
    assert talk.sent() == [{"id": 7, "result": {"action": "accept"}}, {"id": 8, "result": {"action": "decline"}}]


class AsksByPermission(ToolReader):
    def question(self, request_id: str, asked: AcpCall, options: Any) -> AcpQuestion | None:
        return choice_question(request_id, asked.title, options) if asked.kind == "think" else None


def test_a_question_in_the_shape_of_a_permission_is_a_question() -> None:
    options = [{"optionId": "r", "kind": "allow_once", "name": "Red"}, *ALLOW_OR_NOT[2:]]
    talk = AcpConversation(AcpQuirks(tools=AsksByPermission())).prompted()
    talk.asks_permission(0, "call-1", title="Which color?", kind="think", options=options)
    assert talk.facts(facts.InputRequested) == [facts.InputRequested("0", "Which color?", None, ("Red", "Reject"))]
    [refusal] = talk.request(AnswerAction("0", "Blue"))
    assert isinstance(refusal, Refuse)
    talk.request(AnswerAction("0", "Red"))
    assert talk.sent()[1:] == [selected(0, "r")]
    talk.asks_permission(1, "call-2", title="Which color?", kind="think", options=options)
    talk.request(DenyAction("1"))
    assert talk.sent() == [selected(1, "no")]


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_x/y", "craft/z"])
def test_methods_that_are_not_offered_are_refused(method: str) -> None:
    talk = AcpConversation().prompted()
    emitted = talk.receive_request(9, method, path="/x")
    assert [type(fact) for fact in emitted if isinstance(fact, facts.Fact)] == [facts.Ignored]
    [refused] = talk.sent()
    assert refused["error"]["code"] == -32601


def test_acknowledged_requests_get_an_empty_success() -> None:
    talk = AcpConversation(AcpQuirks(acknowledged=frozenset({"fs/write_text_file"}))).prompted()
    talk.receive_request(9, "fs/write_text_file", path="/x", content="y")
    assert talk.sent() == [{"id": 9, "result": {}}]


def test_unknown_methods_are_refused_and_unknown() -> None:
    talk = AcpConversation().prompted()
    assert facts_of(talk.receive_request(9, "session/dance"), facts.Unknown)
    assert talk.sent()[0]["error"]["code"] == -32601


def test_replies_of_another_client_settle_in_any_order() -> None:
    ask = {"toolCall": {"toolCallId": "call-1", **SHELL}, "options": list(ALLOW_OR_NOT)}
    request = {"id": 0, "method": "session/request_permission", "params": {"sessionId": OWN, **ask}}
    for option, granted in (("always", True), ("no", False), ("gone", False)):
        reply = selected(0, option)
        for first, second in (((Source.STDIN, reply), (Source.STDOUT, request)),
                              ((Source.STDOUT, request), (Source.STDIN, reply))):  # fmt: skip
            codec = new_codec()
            steps = receive(codec, first[1], source=first[0]) + receive(codec, second[1], source=second[0])
            assert [settled.granted for settled in facts_of(steps, facts.RequestResolved)] == [granted]


def test_transcript_without_stdin_infers_the_reply_from_the_call() -> None:
    ask = {"toolCall": {"toolCallId": "call-1", **SHELL}, "options": list(ALLOW_OR_NOT)}
    for status, granted in (("in_progress", True), ("completed", True), ("failed", False)):
        codec = new_codec()
        steps = receive(
            codec,
            {"id": 1, "result": {"sessionId": OWN}},
            {"id": 0, "method": "session/request_permission", "params": {"sessionId": OWN, **ask}},
            {"method": "session/update", "params": {"sessionId": OWN, "update": {
                "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": status}}},
        )  # fmt: skip
        assert [settled.granted for settled in facts_of(steps, facts.RequestResolved)] == [granted]
