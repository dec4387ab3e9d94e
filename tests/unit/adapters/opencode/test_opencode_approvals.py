"""Permissions and questions of OpenCode, and the replies to them."""

from typing import Any

import pytest
from opencode_transcript import ABORT, SESSION, OpencodeConversation, event, status, tool
from tests.unit.adapters.codec_conversation import facts_of

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Interrupt, Refuse

ALWAYS = ["echo *"]


@pytest.fixture
def talk() -> OpencodeConversation:
    return OpencodeConversation(approval_mode="prompt").running()


def permission(key: str = "per_1", name: str = "bash", call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    asked = {"id": key, "sessionID": SESSION, "permission": name, "patterns": ["*"], "always": ALWAYS, "metadata": {},
             "tool": {"messageID": "m1", "callID": call_id}}  # fmt: skip
    return event("permission.asked", {**asked, **fields})


def replied(key: str, reply: str) -> dict[str, Any]:
    return event("permission.replied", {"sessionID": SESSION, "requestID": key, "reply": reply})


def question(*parts: dict[str, Any], key: str = "que_1") -> dict[str, Any]:
    return event("question.asked", {"id": key, "sessionID": SESSION, "questions": list(parts)})


COLOUR = {"question": "Which?", "header": "Colour", "options": [{"label": "Red", "description": "warm"}]}


def test_command_approval_shows_the_whole_command(talk: OpencodeConversation) -> None:
    [asked] = facts_of(talk.receive(permission(metadata={"command": "sudo make"})))
    assert asked == facts.ApprovalRequested("per_1", "Run a command", "sudo make", "high", "bash", "c1", "sudo make")


def test_edit_approval_shows_diff_and_tool(talk: OpencodeConversation) -> None:
    talk.receive(tool("c1", "write", "running", input={}))
    diff = "Index: /home/dev/project/a\n====\n--- /home/dev/project/a\n+++ /home/dev/project/a\n@@ -0,0 +1,1 @@\n+x\n"
    [asked] = facts_of(talk.receive(permission(name="edit", metadata={"diff": diff})))
    shown = "--- a/a\n+++ b/a\n@@ -0,0 +1,1 @@\n+x\n"
    assert asked == facts.ApprovalRequested("per_1", "Change files", shown, "medium", "write", "c1", diff=shown)


@pytest.mark.parametrize(
    ("name", "patterns", "action", "detail", "risk"),
    [
        ("external_directory", ["/etc/*"], "Leave the working directory", "/etc/*", "high"),
        ("webfetch", ["https://x"], "Fetch a web page", "https://x", "high"),
        ("read", ["a.env", "b.env"], "Read a file", "a.env, b.env", "low"),
        ("fake_echo", ["*"], "Call a tool of the MCP server fake", "*", "medium"),
        ("novelty", None, "Use novelty", "{}", "medium"),
    ],
)
def test_other_permissions(
    talk: OpencodeConversation, name: str, patterns: Any, action: str, detail: str, risk: str
) -> None:
    [asked] = facts_of(talk.receive(permission(name=name, patterns=patterns)))
    assert isinstance(asked, facts.ApprovalRequested)
    assert (asked.action, asked.detail, asked.risk) == (action, detail, risk)


def test_sub_agent_approval_has_no_call_id(talk: OpencodeConversation) -> None:
    talk.receive(event("session.created", {"info": {"id": "ses_child", "parentID": SESSION}}))
    [asked] = facts_of(talk.receive(permission(sessionID="ses_child")))
    assert isinstance(asked, facts.ApprovalRequested)
    assert asked.call_id is None


@pytest.mark.parametrize(
    ("action", "body", "settled"),
    [
        (ApproveAction("per_1"), {"reply": "once"}, facts.RequestResolved("per_1", True)),
        (ApproveAction("per_1", always=True), {"reply": "always"}, facts.RequestResolved("per_1", True)),
        (
            DenyAction("per_1", "why"),
            {"reply": "reject", "message": "why"},
            facts.RequestResolved("per_1", False, "why"),
        ),
    ],
)
def test_replies(talk: OpencodeConversation, action: Any, body: dict[str, str], settled: facts.Fact) -> None:
    talk.receive(permission())
    assert facts_of(talk.request(action)) == [settled]
    assert talk.sent() == [("POST /permission/per_1/reply", body)]
    assert facts_of(talk.receive(replied("per_1", body["reply"]))) == []
    [refused] = talk.request(ApproveAction("per_1"))
    assert isinstance(refused, Refuse)
    assert refused.code == "INTERACTION_NOT_FOUND"


def test_denial_has_a_message_so_that_the_turn_continues(talk: OpencodeConversation) -> None:
    talk.receive(permission())
    talk.request(DenyAction("per_1"))
    [(_, body)] = talk.sent()
    assert body == {"reply": "reject", "message": "The user denied this call."}


def test_rejections_by_opencode_settle_the_other_requests(talk: OpencodeConversation) -> None:
    talk.receive(permission("per_1"), permission("per_2"))
    talk.request(DenyAction("per_1"))
    assert facts_of(talk.receive(replied("per_1", "reject"), replied("per_2", "reject"))) == [
        facts.RequestResolved("per_2", False)
    ]


def test_denial_is_sent_after_the_other_requests_are_decided(talk: OpencodeConversation) -> None:
    """With a rejection, OpenCode rejects the requests of the session that are still open, also those to be approved."""
    talk.receive(permission("per_1"), permission("per_2"), permission("per_3"))
    assert facts_of(talk.request(DenyAction("per_2", "no"))) == [facts.RequestResolved("per_2", False, "no")]
    assert facts_of(talk.request(ApproveAction("per_3"))) == [facts.RequestResolved("per_3", True)]
    assert talk.sent() == [("POST /permission/per_3/reply", {"reply": "once"})]
    [refused] = talk.request(ApproveAction("per_2"))
    assert isinstance(refused, Refuse)
    assert talk.sent() == [refused]
    assert facts_of(talk.request(ApproveAction("per_1"))) == [facts.RequestResolved("per_1", True)]
    assert talk.sent() == [
        ("POST /permission/per_1/reply", {"reply": "once"}),
        ("POST /permission/per_2/reply", {"reply": "reject", "message": "no"}),
    ]
    assert facts_of(talk.receive(replied("per_2", "reject"))) == []


def test_denial_is_sent_after_another_client_has_decided(talk: OpencodeConversation) -> None:
    talk.receive(permission("per_1"), permission("per_2"))
    talk.request(DenyAction("per_1", "no"))
    assert talk.sent() == []
    assert facts_of(talk.receive(replied("per_2", "once"))) == [facts.RequestResolved("per_2", True)]
    assert talk.sent() == [("POST /permission/per_1/reply", {"reply": "reject", "message": "no"})]


def test_denial_that_waits_is_withdrawn_with_the_turn(talk: OpencodeConversation) -> None:
    talk.receive(permission("per_1"), permission("per_2"))
    talk.request(DenyAction("per_1", "no"))
    resolved = facts_of(talk.request(Interrupt()))
    assert resolved == [facts.RequestResolved("per_2", False, "the turn was stopped")]
    assert sorted(path for path, *_ in talk.sent() if "permission" in path) == [
        "POST /permission/per_1/reply", "POST /permission/per_2/reply",
    ]  # fmt: skip


def test_late_reply_is_ignored(talk: OpencodeConversation) -> None:
    talk.receive(permission())
    talk.request(ApproveAction("per_1"))
    assert facts_of(talk.receive_response(4, {"_tag": "PermissionNotFoundError", "message": "gone"}, 404)) == []


def test_open_requests_are_rejected_when_the_turn_is_stopped(talk: OpencodeConversation) -> None:
    # OpenCode would still run what is granted after the abort.
    talk.receive(permission(), question(COLOUR))
    assert facts_of(talk.request(Interrupt())) == [
        facts.RequestResolved("per_1", False, "the turn was stopped"),
        facts.RequestResolved("que_1/0", False, "the turn was stopped"),
    ]
    assert talk.sent() == [ABORT, ("POST /permission/per_1/reply", {"reply": "reject"}), "POST /question/que_1/reject"]
    assert isinstance(talk.request(ApproveAction("per_1"))[0], Refuse)
    assert facts_of(talk.receive(replied("per_1", "reject"))) == []


def test_end_of_turn_settles_open_requests(talk: OpencodeConversation) -> None:
    talk.receive(permission())
    assert facts_of(talk.rests())[0] == facts.RequestResolved("per_1", False, "the turn ended")


def test_question_is_sent_when_all_parts_are_answered(talk: OpencodeConversation) -> None:
    many = {"question": "Sizes?", "header": "", "options": [{"label": "S"}, {"label": "L"}], "multiple": True}
    assert facts_of(talk.receive(question(COLOUR, many))) == [
        facts.InputRequested("que_1/0", "Which?", "Colour\nRed: warm", ("Red",)),
        facts.InputRequested("que_1/1", "Sizes?", None, ("S", "L")),
    ]
    assert talk.request(AnswerAction("que_1/1", "S\nL")) == [facts.RequestResolved("que_1/1", True)]
    assert isinstance(talk.request(AnswerAction("que_1/1", "S"))[0], Refuse)
    talk.request(AnswerAction("que_1/0", "Blue"))
    assert talk.sent()[-1] == ("POST /question/que_1/reply", {"answers": [["Blue"], ["S", "L"]]})
    answered = {"sessionID": SESSION, "requestID": "que_1", "answers": [["Blue"], ["S", "L"]]}
    assert facts_of(talk.receive(event("question.replied", answered))) == []


def test_declined_question_gets_an_empty_answer(talk: OpencodeConversation) -> None:
    talk.receive(question(COLOUR))
    assert facts_of(talk.request(DenyAction("que_1/0", "no"))) == [facts.RequestResolved("que_1/0", False, "no")]
    assert talk.sent() == [("POST /question/que_1/reply", {"answers": [[]]})]


@pytest.mark.parametrize("action", [AnswerAction("per_1", "x"), ApproveAction("que_1/0"), AnswerAction("que_1/9", "x")])
def test_reply_of_the_wrong_kind_is_refused(talk: OpencodeConversation, action: Any) -> None:
    talk.receive(permission(), question(COLOUR))
    [refused] = talk.request(action)
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"


@pytest.mark.parametrize(("reply", "granted"), [("once", True), ("always", True), ("reject", False)])
def test_replies_of_other_clients_are_emitted(talk: OpencodeConversation, reply: str, granted: bool) -> None:
    talk.receive(permission())
    assert facts_of(talk.receive(replied("per_1", reply))) == [facts.RequestResolved("per_1", granted)]


def test_question_replies_of_other_clients_are_emitted(talk: OpencodeConversation) -> None:
    talk.receive(question(COLOUR), question(COLOUR, key="que_2"))
    gone = [event(f"question.{how}", {"sessionID": SESSION, "requestID": key})
            for how, key in (("replied", "que_1"), ("rejected", "que_2"))]  # fmt: skip
    assert facts_of(talk.receive(*gone)) == [
        facts.RequestResolved("que_1/0", True), facts.RequestResolved("que_2/0", False),
    ]  # fmt: skip


def test_question_without_parts_is_unknown(talk: OpencodeConversation) -> None:
    [emitted] = talk.receive(question())
    assert isinstance(emitted, facts.Unknown)


def test_requests_of_other_sessions_are_ignored(talk: OpencodeConversation) -> None:
    assert facts_of(talk.receive(permission(sessionID="ses_x"), status("idle", "ses_x"))) == []
