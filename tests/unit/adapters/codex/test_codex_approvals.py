"""Approvals and questions of Codex, in our own runs and in transcripts of other clients."""

from typing import Any

import pytest
from codex_recordings import OWN_THREAD, new_codec, recorded_facts
from codex_transcript import CodexConversation
from tests.unit.adapters.codec_conversation import receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Refuse, Source

RUN = "item/commandExecution/requestApproval"
ELICIT = "mcpServer/elicitation/request"
INPUT = "item/tool/requestUserInput"
COMMAND = {"type": "commandExecution", "id": "c", "command": "rm x", "cwd": "/", "status": "inProgress"}


def kinds(steps: list[Any]) -> list[str]:
    return [type(step).__name__ for step in steps]


# -- approvals


def test_a_command_is_shown_whole_with_the_reason() -> None:
    [asked] = recorded_facts("as_approval_accept", facts.ApprovalRequested)
    [ready] = recorded_facts("as_approval_accept", facts.ToolReady)
    assert asked.detail == ready.shell.command
    assert (asked.action, asked.risk, asked.tool_name) == ("Run a command: need it", "high", "exec_command")
    assert asked.call_id == ready.call_id


def test_a_command_that_only_reads_is_a_low_risk() -> None:
    talk = CodexConversation().running()
    cases = ((0, ["read", "search"], "low"), (1, ["read", "unknown"], "medium"), (2, [], "medium"))
    for number, actions, risk in cases:
        [asked] = talk.receive_request(
            number, RUN, itemId="c", command="x", commandActions=[{"type": kind} for kind in actions]
        )
        assert asked.risk == risk
    [asked] = talk.receive_request(
        3, RUN, itemId="c", command="x", networkApprovalContext={"host": "a", "protocol": "https"}
    )
    assert asked.risk == "high"
    assert '"host": "a"' in asked.detail


def test_a_patch_is_shown_as_its_diff() -> None:
    [asked] = recorded_facts("as_file_change_approval", facts.ApprovalRequested)
    assert (asked.detail, asked.risk) == ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n", "medium")


def test_an_mcp_tool_is_shown_with_its_arguments_and_call() -> None:
    asked = recorded_facts("as_mcp", facts.ApprovalRequested)[0]
    begun = recorded_facts("as_mcp", facts.McpBegin)[0]
    assert (asked.call_id, asked.tool_name) == (begun.call_id, "echo")
    assert '{"text": "ping"}' in asked.detail


@pytest.mark.parametrize(
    ("action", "result", "granted"),
    [
        (ApproveAction("0"), {"decision": "accept"}, True),
        (ApproveAction("0", always=True), {"decision": "acceptForSession"}, True),
        (DenyAction("0", "no"), {"decision": "decline"}, False),
    ],
)
def test_a_command_is_decided(action: ApproveAction | DenyAction, result: dict[str, str], granted: bool) -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, RUN, itemId="c", command="rm x")
    settled = talk.request(action)[-1]
    assert talk.sent() == [{"id": 0, "result": result}]
    assert settled == facts.RequestResolved("0", granted, getattr(action, "reason", None))
    assert kinds(talk.receive_notification("serverRequest/resolved", requestId=0)) == ["Ignored"]


def test_the_servers_ids_are_not_ours() -> None:
    # The server counts from 0, we from 1: its request 3 arrives while our request 3 is unanswered.
    talk = CodexConversation().opened()
    talk.begins("turn-1")
    talk.sent()
    talk.receive_request(3, RUN, itemId="c", command="rm x")
    assert kinds(talk.receive_response(3, {"turn": {"id": "turn-1"}})) == ["Ignored"]
    talk.request(ApproveAction("3"))
    assert talk.sent() == [{"id": 3, "result": {"decision": "accept"}}]


def test_ids_may_be_text_and_keep_their_type() -> None:
    talk = CodexConversation().running()
    talk.receive_request("7", RUN, itemId="c", command="one")
    talk.receive_request(7, RUN, itemId="d", command="two")
    talk.request(ApproveAction("7"))
    talk.request(DenyAction('"7"'))
    assert talk.sent() == [
        {"id": 7, "result": {"decision": "accept"}},
        {"id": "7", "result": {"decision": "decline"}},
    ]


def test_an_mcp_tool_is_approved_for_the_session_where_the_server_lets_us() -> None:
    for persist, extra in ((["session", "always"], {"_meta": {"persist": "session"}}), (["always"], {}), (None, {})):
        talk = CodexConversation().running()
        meta = {"codex_approval_kind": "mcp_tool_call", "tool_name": "echo", "persist": persist}
        schema = {"type": "object", "properties": {}}
        talk.receive_request(
            0, ELICIT, serverName="e", mode="form", message="May it?", requestedSchema=schema, _meta=meta
        )
        talk.request(ApproveAction("0", always=True))
        assert talk.sent() == [{"id": 0, "result": {"action": "accept", "content": {}, **extra}}]


def test_an_mcp_tool_is_declined() -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, ELICIT, serverName="e", mode="form", message="May it?", requestedSchema={"type": "object"})
    talk.request(DenyAction("0"))
    assert talk.sent() == [{"id": 0, "result": {"action": "decline", "content": None}}]


def test_a_link_is_shown_and_approved() -> None:
    talk = CodexConversation().running()
    [asked] = talk.receive_request(
        0, ELICIT, serverName="e", mode="url", message="Log in", url="https://x", elicitationId="1"
    )
    assert "https://x" in asked.detail
    talk.request(ApproveAction("0"))
    assert talk.sent()[0]["result"]["action"] == "accept"


def test_permissions_are_granted_as_they_were_asked() -> None:
    for action, result in (
        (ApproveAction("0"), {"permissions": {"network": {"enabled": True}}, "scope": "turn"}),
        (ApproveAction("0", always=True), {"permissions": {"network": {"enabled": True}}, "scope": "session"}),
        (DenyAction("0"), {"permissions": {}, "scope": "turn"}),
    ):
        talk = CodexConversation().running()
        wanted = {"network": {"enabled": True}, "fileSystem": None}
        [asked] = talk.receive_request(
            0, "item/permissions/requestApproval", itemId="c", reason="npm", permissions=wanted
        )
        assert (asked.action, asked.risk) == ("Grant permissions: npm", "high")
        talk.request(action)
        assert talk.sent() == [{"id": 0, "result": result}]


def test_an_approval_inside_a_sub_agent_is_asked_of_the_run() -> None:
    [asked], [settled] = (
        recorded_facts("as_agent_approval", facts.ApprovalRequested),
        recorded_facts("as_agent_approval", facts.RequestResolved),
    )
    assert asked.call_id is None  # no call of the main stream waits for it
    assert settled.granted


def test_a_reply_is_given_once() -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, RUN, itemId="c", command="rm x")
    talk.request(ApproveAction("0"))
    [refused] = talk.request(DenyAction("0"))
    assert isinstance(refused, Refuse)
    assert refused.code == "INTERACTION_NOT_FOUND"


def test_answering_an_approval_is_refused() -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, RUN, itemId="c", command="rm x")
    [refused] = talk.request(AnswerAction("0", "sure"))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"
    assert kinds(talk.request(ApproveAction("0"))) == ["WriteStdin", "RequestResolved"]


def test_open_requests_are_settled_before_the_turn_ends() -> None:
    # The server resolves the request only after turn/completed.
    assert kinds(recorded_facts("as_interrupt_approval", facts.RequestResolved, facts.TurnStopped)) == [
        "RequestResolved",
        "TurnStopped",
    ]
    [settled] = recorded_facts("as_interrupt_approval", facts.RequestResolved)
    assert not settled.granted


# -- questions


def ask_two(talk: CodexConversation) -> list[Any]:
    options = [{"label": "A", "description": "the first"}, {"label": "B", "description": ""}]
    questions = [
        {"id": "q1", "header": "Pick", "question": "Which?", "isOther": True, "isSecret": False, "options": options},
        {"id": "q2", "header": "", "question": "Why?", "isOther": True, "isSecret": False, "options": None},
    ]
    return talk.receive_request(0, INPUT, itemId="c", questions=questions, isBlocking=True)


def test_questions_are_asked_one_by_one_and_answered_together() -> None:
    talk = CodexConversation().running()
    assert ask_two(talk) == [
        facts.InputRequested("0/q1", "Which?", "Pick\nA: the first", ("A", "B")),
        facts.InputRequested("0/q2", "Why?"),
    ]
    assert talk.request(AnswerAction("0/q2", "because")) == [facts.RequestResolved("0/q2", granted=True)]
    assert talk.sent() == []
    talk.request(AnswerAction("0/q1", "B"))
    answers = {"q2": {"answers": ["because"]}, "q1": {"answers": ["B"]}}
    assert talk.sent() == [{"id": 0, "result": {"answers": answers}}]


def test_a_question_may_stay_without_an_answer() -> None:
    talk = CodexConversation().running()
    ask_two(talk)
    talk.request(DenyAction("0/q1"))
    talk.request(AnswerAction("0/q2", "because"))
    assert talk.sent()[0]["result"]["answers"]["q1"] == {"answers": []}


def test_a_question_that_codex_withdrew_is_settled() -> None:
    talk = CodexConversation().running()
    ask_two(talk)
    steps = talk.receive_notification("serverRequest/resolved", requestId=0)
    assert [(step.request_id, step.granted) for step in steps] == [("0/q1", False), ("0/q2", False)]
    assert kinds(talk.request(AnswerAction("0/q1", "B"))) == ["Refuse"]


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "as in the passport"},
        "age": {"type": "integer"},
        "size": {"type": "number"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "sure": {"type": "boolean"},
    },
}


def test_a_form_of_an_mcp_server_is_filled_in_with_the_right_types() -> None:
    talk = CodexConversation().running()
    asked = talk.receive_request(0, ELICIT, serverName="e", mode="form", message="Please", requestedSchema=FORM)
    assert asked[0] == facts.InputRequested("0/name", "Your name", "as in the passport", source="tool")
    assert asked[3].options == ("red", "blue")
    for field, text in (("name", "Ada"), ("age", " 36 "), ("size", "1.7"), ("color", "red"), ("sure", "Yes")):
        talk.request(AnswerAction(f"0/{field}", text))
    content = {"name": "Ada", "age": 36, "size": 1.7, "color": "red", "sure": True}
    assert talk.sent() == [{"id": 0, "result": {"action": "accept", "content": content}}]


@pytest.mark.parametrize(
    ("field", "text", "allowed"),
    [("age", "old", "integer"), ("size", "nan", "number"), ("color", "green", "red, blue"), ("sure", "hm", "boolean")],
)
def test_an_answer_of_the_wrong_type_is_refused_and_can_be_given_again(field: str, text: str, allowed: str) -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, ELICIT, serverName="e", mode="form", message="Please", requestedSchema=FORM)
    [refused] = talk.request(AnswerAction(f"0/{field}", text))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"
    assert allowed in refused.message
    assert kinds(talk.request(DenyAction(f"0/{field}")))[0] == "WriteStdin"


def test_declining_one_field_declines_the_form() -> None:
    talk = CodexConversation().running()
    talk.receive_request(0, ELICIT, serverName="e", mode="form", message="Please", requestedSchema=FORM)
    steps = talk.request(DenyAction("0/age"))
    assert talk.sent() == [{"id": 0, "result": {"action": "decline", "content": None}}]
    assert kinds(steps) == ["WriteStdin", *["RequestResolved"] * 5]


def test_a_question_is_not_approved() -> None:
    talk = CodexConversation().running()
    ask_two(talk)
    assert kinds(talk.request(ApproveAction("0/q1"))) == ["Refuse"]


# -- unsupported requests


def test_an_unknown_request_is_refused_so_that_codex_does_not_wait() -> None:
    talk = CodexConversation().running()
    assert kinds(talk.receive_request(5, "sing/aSong")) == ["Unknown", "WriteStdin"]
    assert talk.sent() == [{"id": 5, "error": {"code": -32601, "message": "agent-mux does not offer sing/aSong"}}]


def test_a_known_request_that_we_do_not_offer_is_refused_quietly() -> None:
    talk = CodexConversation().running()
    assert kinds(talk.receive_request(5, "currentTime/read")) == ["Ignored", "WriteStdin"]


def test_a_request_of_an_unknown_shape_is_refused() -> None:
    talk = CodexConversation().running()
    assert kinds(talk.receive_request(5, RUN, itemId=["c"])) == ["Unknown", "WriteStdin"]


# -- requests to other clients


@pytest.mark.parametrize("with_stdin", [True, False])
@pytest.mark.parametrize(
    ("name", "granted"),
    [
        ("as_approval_accept", True),
        ("as_approval_session", True),
        ("as_approval_decline", False),
        ("as_approval_cancel", False),
        ("as_file_change_approval", True),
        ("as_file_change_decline", False),
    ],
)
def test_another_clients_decision_follows_from_its_reply_or_from_the_item(
    name: str, granted: bool, with_stdin: bool
) -> None:
    [settled] = recorded_facts(name, facts.RequestResolved, with_stdin=with_stdin)
    assert settled.granted is granted


def test_another_clients_reply_settles_the_request() -> None:
    codec = new_codec()
    asked = {"method": RUN, "id": 0, "params": {"threadId": OWN_THREAD, "itemId": "c", "command": "rm x"}}
    assert kinds(receive(codec, asked)) == ["ApprovalRequested"]
    reply = {"id": 0, "error": {"code": -32000, "message": "host blew up"}}
    assert receive(codec, reply, source=Source.STDIN) == [
        facts.RequestResolved("0", granted=False, reason="host blew up"),
    ]


def test_another_clients_answers_settle_a_question() -> None:
    [settled] = recorded_facts("as_request_user_input", facts.RequestResolved)
    assert settled == facts.RequestResolved("0/q1", granted=True)
