"""Permissions and questions of Copilot, and the replies to them."""

from typing import Any

import pytest
from copilot_transcript import SESSION, CopilotConversation, event, events_of, facts_from, new_codec
from tests.unit.adapters.codec_conversation import facts_of, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Refuse, Source

SHELL = {
    "kind": "shell",
    "toolCallId": "c",
    "fullCommandText": "rm made",
    "commands": [{"identifier": "rm made", "readOnly": False}],
    "commandSegments": [{"identifier": "rm"}],
}


def wanted(request: dict[str, Any], prompt: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"requestId": "r", "permissionRequest": request, "promptRequest": prompt or {}, **more}


def asking(request: dict[str, Any] | None = None, prompt: dict[str, Any] | None = None) -> CopilotConversation:
    """Return a transcript in which a call waits for permission."""
    talk = CopilotConversation().running()
    talk.receive_notification("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "rm made"})
    talk.receive_notification("permission.requested", **wanted(request or SHELL, prompt))
    return talk


def decision(number: int, **result: Any) -> dict[str, Any]:
    params = {"sessionId": SESSION, "requestId": "r", "result": result}
    method = "session.permissions.handlePendingPermissionRequest"
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_a_call_waits_for_permission() -> None:
    talk = asking()
    assert talk.facts()[-1] == facts.ApprovalRequested(
        "r", "Run a shell command", "rm made", "high", "bash", "c", "rm made"
    )
    assert talk.request(ApproveAction("r"))[-1] == facts.RequestResolved("r", granted=True)
    assert talk.sent() == [decision(5, kind="approve-once")]
    talk.receive_response(5, {"success": True})
    steps = talk.receive_notification("permission.completed", requestId="r", result={"kind": "approved"})
    assert facts_of(steps) == []
    assert talk.request(ApproveAction("r")) == [Refuse("INTERACTION_NOT_FOUND", "copilot is not waiting for r")]


@pytest.mark.parametrize(
    ("action", "result"),
    [
        (ApproveAction("r"), {"kind": "approved"}),
        (ApproveAction("r", always=True), {"kind": "approved"}),
        (DenyAction("r", "not here"), {"kind": "denied-interactively-by-user", "feedback": "not here"}),
    ],
)
def test_request_of_an_older_release_gets_the_decision_that_it_knows(
    action: ApproveAction | DenyAction, result: dict[str, Any]
) -> None:
    talk = CopilotConversation().running()
    talk.receive_notification("permission.requested", requestId="r", permissionRequest=SHELL)
    talk.request(action)
    assert talk.sent() == [decision(5, **result)]


@pytest.mark.parametrize(
    ("reason", "result"),
    [(None, {"kind": "reject"}), ("not here", {"kind": "reject", "feedback": "not here"})],
)
def test_a_refusal_and_its_reason(reason: str | None, result: dict[str, Any]) -> None:
    talk = asking()
    assert talk.request(DenyAction("r", reason))[-1] == facts.RequestResolved("r", granted=False, reason=reason)
    assert talk.sent() == [decision(5, **result)]


@pytest.mark.parametrize(
    ("request_", "prompt", "approval"),
    [
        (SHELL, {"kind": "commands", "commandIdentifiers": ["rm"]}, {"kind": "commands", "commandIdentifiers": ["rm"]}),
        ({"kind": "write", "fileName": "/a"}, {}, {"kind": "write"}),
        ({"kind": "read", "path": "/a"}, {}, {"kind": "read"}),
        ({"kind": "mcp", "serverName": "s", "toolName": "t"}, {}, {"kind": "mcp", "serverName": "s", "toolName": "t"}),
        ({"kind": "memory", "fact": "x"}, {}, {"kind": "memory"}),
        ({"kind": "custom-tool", "toolName": "t"}, {}, {"kind": "custom-tool", "toolName": "t"}),
        ({"kind": "url", "url": "https://x"}, {}, None),
        ({"kind": "something"}, {}, None),
    ],
)
def test_approving_always_covers_similar_requests_for_the_session(
    request_: dict[str, Any], prompt: dict[str, Any], approval: dict[str, Any] | None
) -> None:
    talk = asking(request_, prompt)
    talk.request(ApproveAction("r", always=True))
    [sent] = talk.sent()
    expected = {"kind": "approve-for-session", **({"approval": approval} if approval else {})}
    assert sent["params"]["result"] == expected


@pytest.mark.parametrize(
    ("request_", "prompt", "action", "detail", "risk"),
    [
        ({"kind": "shell", "fullCommandText": "ls", "commands": [{"readOnly": True}]}, {}, "Run a shell command", "ls",
         "low"),
        ({"kind": "shell", "fullCommandText": "make"}, {}, "Run a shell command", "make", "medium"),
        ({"kind": "shell", "fullCommandText": "x", "possibleUrls": [{"url": "https://x"}]}, {}, "Run a shell command",
         "x", "high"),
        ({"kind": "write", "fileName": "/a", "diff": "\n+one\n"}, {}, "Change a file", "/a\n+one", "medium"),
        ({"kind": "read", "path": "/etc/hostname"}, {}, "Read a file", "/etc/hostname", "low"),
        ({"kind": "read", "path": "/etc/hostname"}, {"kind": "path", "accessKind": "read", "paths": ["/etc/hostname"]},
         "Use paths outside of the project (read)", "/etc/hostname", "medium"),
        ({"kind": "mcp", "serverName": "s", "toolName": "s-t", "args": {"a": 1}}, {"kind": "mcp", "toolName": "t"},
         "Use t of the MCP server s", '{"a":1}', "medium"),
        ({"kind": "mcp", "serverName": "s", "toolName": "t", "readOnly": True}, {}, "Use t of the MCP server s", "null",
         "low"),
        ({"kind": "url", "url": "https://x"}, {}, "Fetch a web page", "https://x", "high"),
        ({"kind": "hook", "x": 1}, {}, "hook", '{"kind":"hook","x":1}', "medium"),
    ],
)  # fmt: skip
def test_an_approval_has_a_title_a_detail_and_a_risk(
    request_: dict[str, Any], prompt: dict[str, Any], action: str, detail: str, risk: str
) -> None:
    asked = asking(request_, prompt).facts()[-1]
    assert isinstance(asked, facts.ApprovalRequested)
    assert (asked.action, asked.detail, asked.risk) == (action, detail, risk)


def test_an_approval_cannot_be_answered_like_a_question() -> None:
    [refused] = asking().request(AnswerAction("r", "yes"))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"


def test_open_requests_are_settled_at_the_end_of_the_turn() -> None:
    talk = asking()
    talk.receive_notification("assistant.idle", aborted=True)
    assert facts.RequestResolved("r", granted=False, reason="the turn ended") in talk.facts()
    assert isinstance(talk.request(ApproveAction("r"))[0], Refuse)


def test_a_sub_agent_in_the_background_continues_to_wait() -> None:
    talk = CopilotConversation().running()
    talk.receive_notification("permission.requested", "inner", **wanted(SHELL))
    talk.receive_notification("assistant.idle")
    asked = [fact for fact in talk.facts() if isinstance(fact, facts.ApprovalRequested)]
    assert len(asked) == 2  # emitted again, because the end of the turn closed it
    assert asked[0].call_id is None
    talk.request(ApproveAction("r"))
    assert talk.sent() == [decision(5, kind="approve-once")]


def test_a_request_decided_by_a_hook_is_not_emitted() -> None:
    talk = CopilotConversation().running()
    assert facts_of(talk.receive_notification("permission.requested", **wanted(SHELL, resolvedByHook=True))) == []


def test_a_refused_decision_is_noted() -> None:
    talk = asking()
    talk.request(ApproveAction("r"))
    [note] = facts_of(talk.receive_error(5, "too late"))
    assert note == facts.Note("copilot refused the decision: too late", "warn")


def test_another_clients_decision_is_emitted_when_it_is_completed() -> None:
    result = {"kind": "denied-interactively-by-user", "feedback": "no"}
    steps = facts_from(
        event("permission.requested", **wanted(SHELL)), event("permission.completed", requestId="r", result=result)
    )
    assert steps[-1] == facts.RequestResolved("r", granted=False, reason="no")


# -- questions


def question(**params: Any) -> CopilotConversation:
    talk = CopilotConversation().running()
    talk.receive_notification(
        "tool.execution_start", toolCallId="q", toolName="ask_user", arguments={"question": "Which?"}
    )
    talk.receive_notification("user_input.requested", requestId="x", question="Which?", toolCallId="q")
    talk.receive_request(
        0, "userInput.request", **{"sessionId": SESSION, "question": "Which?", "choices": ["red"], **params}
    )
    return talk


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 0, "result": result}


@pytest.mark.parametrize(
    ("action", "result", "granted"),
    [
        (AnswerAction("question:0", "red"), {"answer": "red", "wasFreeform": False}, True),
        (AnswerAction("question:0", "blue"), {"answer": "blue", "wasFreeform": True}, True),
        (DenyAction("question:0"), {"answer": "The user declined to answer.", "wasFreeform": True}, False),
        (
            DenyAction("question:0", "Ask later."),
            {"answer": "The user declined to answer. Ask later.", "wasFreeform": True},
            False,
        ),
    ],
)  # fmt: skip
def test_a_question_and_its_answer(action: Any, result: dict[str, Any], granted: bool) -> None:
    talk = question()
    [asked] = [fact for fact in talk.facts() if isinstance(fact, facts.InputRequested)]
    assert asked == facts.InputRequested("question:0", "Which?", options=("red",))
    assert talk.request(action)[-1] == facts.RequestResolved("question:0", granted=granted)
    assert talk.sent() == [answer(**result)]
    ended = talk.receive_notification(
        "tool.execution_complete", toolCallId="q", success=True, result={"content": "red"}
    )
    assert facts_of(ended) == []  # the call is the question


def test_a_question_with_choices_only() -> None:
    [refused] = question(allowFreeform=False).request(AnswerAction("question:0", "blue"))
    assert refused == Refuse("VALIDATION_ERROR", "question:0: got 'blue'; allowed: red")


def test_a_question_cannot_be_approved() -> None:
    [refused] = question().request(ApproveAction("question:0"))
    assert isinstance(refused, Refuse)


def test_a_question_of_an_unknown_shape_is_refused() -> None:
    talk = CopilotConversation().running()
    steps = talk.receive_request(0, "userInput.request", question=5)
    assert isinstance(steps[0], facts.Unknown)
    assert talk.sent()[0]["error"]["code"] == -32601


def test_a_failed_call_of_the_question_tool_is_shown() -> None:
    steps = facts_from(
        event("tool.execution_start", toolCallId="q", toolName="ask_user", arguments={"question": "Which?"}),
        event("tool.execution_complete", toolCallId="q", success=False, error={"message": "does not exist"}),
    )
    assert [type(fact) for fact in steps] == [facts.ToolReady, facts.ToolDone]


def test_another_clients_answer_may_be_seen_before_the_question() -> None:
    ask = {"id": 0, "method": "userInput.request", "params": {"question": "Which?"}}
    for early in (True, False):
        codec = new_codec()
        steps = receive(codec, answer(answer="red"), source=Source.STDIN) if early else []
        steps += receive(codec, ask)
        steps += [] if early else receive(codec, answer(answer="red"), source=Source.STDIN)
        assert facts_of(steps)[-1] == facts.RequestResolved("question:0", granted=True)


# -- other requests


@pytest.mark.parametrize("method", ["tool.call", "hooks.invoke", "something.new"])
def test_unsupported_requests_are_refused(method: str) -> None:
    talk = CopilotConversation().running()
    steps = talk.receive_request("a", method)
    assert isinstance(steps[0], facts.Unknown if method == "something.new" else facts.Ignored)
    assert talk.sent() == [
        {"jsonrpc": "2.0", "id": "a", "error": {"code": -32601, "message": f"agent-mux does not offer {method}"}}
    ]


def test_the_recording_of_approvals() -> None:
    events = events_of("hl_approvals")
    kinds = [one.type for one in events if one.type.startswith("approval_")]
    assert kinds.count("approval_request") == kinds.count("approval_granted") + kinds.count("approval_denied")
    assert kinds.count("approval_denied") == 1
    [denied] = [one for one in events if one.type == "tool_error" and "not in my house" in one.error]
    assert denied
