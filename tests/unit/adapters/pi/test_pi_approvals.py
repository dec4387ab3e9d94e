"""Approvals and questions: the dialogs of pi's extensions, including ours."""

import json
import re
from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import codec_of, facts_of, receive
from tests.unit.adapters.pi_family import AGENT_START, SETTLED, PiConversation, agent_end, answer
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, DenyAction, Interrupt, Refuse, Source
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.pi.extension import TITLE, extension_code
from agent_mux_adapters.pi import ADAPTER
from agent_mux_adapters.pi.approvals import read_approval

ALL = Recordings(ADAPTER, "json")
CALL = {"id": "c", "name": "bash", "input": {"command": "rm -rf build"}}


def running() -> PiConversation:
    talk = PiConversation(ADAPTER, interactive=True)
    talk.receive_response("mux-1", "get_state", sessionId="s")
    talk.receive(AGENT_START)
    talk.sent()
    return talk


def gate(call: Any = CALL) -> dict[str, Any]:
    """Return the dialog that our extension opens."""
    return {"method": "input", "title": TITLE, "placeholder": json.dumps(call)}


def reply(key: str, **fields: Any) -> dict[str, Any]:
    return {"type": "extension_ui_response", "id": key, **fields}


def decided(line: dict[str, Any]) -> Any:
    """Return the response that our extension reads."""
    return json.loads(line["value"])


# -- permissions


def test_extension_dialog_contains_the_call() -> None:
    assert facts_of(running().receive_request("r", **gate())) == [
        facts.ApprovalRequested(
            "r",
            "Run a shell command",
            "rm -rf build",
            "high",
            "bash",
            "c",
            "rm -rf build",
            (),
            {"command": "rm -rf build"},
        )
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "action", "detail"),
    [
        ("write", {"path": "a.txt", "content": "x"}, "Write a file", "a.txt"),
        ("edit", {"path": "a.txt", "edits": []}, "Edit a file", "a.txt"),
        ("deploy", {"to": "prod"}, "Use deploy", '{"to":"prod"}'),
    ],
)
def test_approval_shows_action_detail_and_risk(name: str, arguments: Any, action: str, detail: str) -> None:
    [request] = facts_of(running().receive_request("r", **gate({"id": "c", "name": name, "input": arguments})))
    assert (request.action, request.detail.replace(" ", ""), request.risk) == (
        action,
        detail.replace(" ", ""),
        "medium",
    )


def test_unreadable_call_still_asks() -> None:
    [request] = facts_of(running().receive_request("r", method="input", title=TITLE, placeholder="{"))
    assert (request.action, request.call_id, request.tool_name) == ("Use a tool", None, None)


@pytest.mark.parametrize(
    ("action", "decision", "granted", "reason"),
    [
        (ApproveAction("r"), {"decision": "allow"}, True, None),
        (ApproveAction("r", always=True), {"decision": "always"}, True, None),
        (DenyAction("r"), {"decision": "deny"}, False, None),
        (
            DenyAction("r", "not in my house"),
            {"decision": "deny", "reason": "not in my house"},
            False,
            "not in my house",
        ),
    ],
)
def test_decision_is_sent_to_the_extension(action: Any, decision: Any, granted: bool, reason: str | None) -> None:
    talk = running()
    talk.receive_request("r", **gate())
    assert facts_of(talk.request(action)) == [facts.RequestResolved("r", granted, reason)]
    [line] = talk.sent()
    assert line == reply("r", value=line["value"])
    assert decided(line) == decision


def test_request_is_settled_once() -> None:
    talk = running()
    talk.receive_request("r", **gate())
    talk.request(ApproveAction("r"))
    [refused] = talk.request(DenyAction("r"))
    assert isinstance(refused, Refuse)
    assert refused.code == "INTERACTION_NOT_FOUND"


def test_text_answer_to_an_approval_is_refused() -> None:
    talk = running()
    talk.receive_request("r", **gate())
    [refused] = talk.request(AnswerAction("r", "yes"))
    assert isinstance(refused, Refuse)
    assert refused.code == "VALIDATION_ERROR"


def test_interrupt_cancels_open_dialogs_before_the_abort() -> None:
    talk = running()
    talk.receive_request("r", **gate())
    settled = facts_of(talk.request(Interrupt()), facts.RequestResolved)
    assert settled == [facts.RequestResolved("r", granted=False, reason="interrupted")]
    assert talk.sent() == [reply("r", cancelled=True), {"id": "mux-3", "type": "abort"}]


def test_end_of_turn_closes_open_requests() -> None:
    talk = running()
    talk.receive_request("r", **gate())
    talk.receive(answer("hi"), agent_end(willRetry=False), SETTLED)
    [refused] = talk.request(ApproveAction("r"))
    assert isinstance(refused, Refuse)


@pytest.mark.parametrize("version", ["0.73.1", "0.87.1"])
def test_recorded_decisions_are_emitted(version: str) -> None:
    name = f"{version}/rpc_approvals"
    request = ALL.facts(name, facts.ApprovalRequested)
    settled = {fact.request_id: fact.granted for fact in ALL.facts(name, facts.RequestResolved)}
    assert {fact.request_id for fact in request} == set(settled)
    assert set(settled.values()) == {True, False}
    assert all(fact.call_id and fact.tool_name for fact in request)


# -- our extension


def test_extension_code_contains_its_settings() -> None:
    code = extension_code(asks=True, images={"/it's.png": "image/png"})
    assert "const ASKS = true;" in code
    assert f"const TITLE = {json.dumps(TITLE)};" in code
    assert """const IMAGES = [{"path": "/it's.png", "mimeType": "image/png"}];""" in code
    assert "const IMAGES = [];" in extension_code(asks=False)


def test_extension_code_registers_mcp_servers_with_literal_values() -> None:
    servers = (
        McpServer("local", command="/bin/x", args=("$HOME",), env={"A": "$B", "C": "!ls", "D": "a!"}),
        McpServer("remote", "sse", url="http://127.0.0.1/x", headers={"Authorization": "Bearer $$1"}),
    )
    code = extension_code(asks=False, mcp_servers=servers)
    [line] = re.findall(r"const MCP_SERVERS = (.*);", code)
    assert json.loads(line) == [
        {
            "name": "local",
            "config": {
                "type": "stdio", "command": "/bin/x", "args": ["$HOME"], "env": {"A": "$$B", "C": "$!ls", "D": "a!"},
            },
        },
        {
            "name": "remote",
            "config": {"type": "http", "url": "http://127.0.0.1/x", "headers": {"Authorization": "Bearer $$$$1"}},
        },
    ]  # fmt: skip


def test_approval_names_the_mcp_server() -> None:
    call = {"id": "c", "name": "mcp__my_docs__read__page", "input": {"page": 1}}
    line = {"method": "input", "title": TITLE, "placeholder": json.dumps(call)}
    dialog = read_approval("r", line)
    assert dialog is not None
    assert dialog.request.action == "Use read__page of the MCP server my_docs"


# -- questions of other extensions


def test_select_dialog_is_a_question_with_options() -> None:
    talk = running()
    request = facts_of(talk.receive_request("q", "select", title="Which?", options=["a", "b"]))
    assert request == [facts.InputRequested("q", "Which?", options=("a", "b"), source="tool")]
    [refused] = talk.request(AnswerAction("q", "c"))
    assert isinstance(refused, Refuse)
    assert facts_of(talk.request(AnswerAction("q", "b"))) == [facts.RequestResolved("q", granted=True)]
    assert talk.sent()[-1] == reply("q", value="b")


@pytest.mark.parametrize(("word", "confirmed"), [("yes", True), (" Y ", True), ("no", False), ("cancel", False)])
def test_confirm_dialog_accepts_yes_and_no(word: str, confirmed: bool) -> None:
    talk = running()
    request = facts_of(talk.receive_request("q", "confirm", title="Sure?", message="really"))
    assert request == [facts.InputRequested("q", "Sure?", "really", ("yes", "no"), "tool")]
    talk.request(AnswerAction("q", word))
    assert talk.sent() == [reply("q", confirmed=confirmed)]


def test_confirm_dialog_refuses_other_answers() -> None:
    talk = running()
    talk.receive_request("q", "confirm", title="Sure?")
    [refused] = talk.request(AnswerAction("q", "perhaps"))
    assert isinstance(refused, Refuse)


@pytest.mark.parametrize(("method", "field"), [("input", "placeholder"), ("editor", "prefill")])
def test_input_dialog_accepts_any_text(method: str, field: str) -> None:
    talk = running()
    request = facts_of(talk.receive_request("q", method, title="Name?", **{field: "like this"}))
    assert request == [facts.InputRequested("q", "Name?", "like this", source="tool")]
    talk.request(AnswerAction("q", "any"))
    assert talk.sent() == [reply("q", value="any")]


def test_question_may_be_declined() -> None:
    talk = running()
    talk.receive_request("q", "input", title="Name?")
    assert facts_of(talk.request(DenyAction("q"))) == [facts.RequestResolved("q", granted=False)]
    assert talk.sent() == [reply("q", cancelled=True)]


@pytest.mark.parametrize("method", ["setStatus", "setWidget", "setTitle", "set_editor_text"])
def test_screen_dialogs_are_ignored(method: str) -> None:
    assert facts_of(running().receive_request("q", method)) == []


def test_notices_become_notes() -> None:
    talk = running()
    assert facts_of(talk.receive_request("q", "notify", message="hello")) == [facts.Note("hello", "info")]
    assert facts_of(talk.receive_request("q", "notify", message="oh", notifyType="error")) == [facts.Note("oh", "warn")]
    assert facts_of(talk.receive_request("q", "open_url", url="https://x")) == [
        facts.Note("the agent asks to open this URL in a browser: https://x")
    ]


def test_unknown_dialog_is_reported() -> None:
    [unknown] = facts_of(running().receive_request("q", "hologram"))
    assert isinstance(unknown, facts.Unknown)


def test_agent_may_withdraw_a_dialog() -> None:
    talk = running()
    talk.receive_request("q", "input", title="Name?")
    withdrawn = {"type": "extension_ui_request", "method": "cancel", "targetId": "q"}
    [settled] = facts_of(talk.receive(withdrawn))
    assert settled == facts.RequestResolved("q", granted=False, reason="the agent withdrew the request")
    assert facts_of(talk.receive(withdrawn)) == []


@pytest.mark.parametrize("answer_first", [True, False])
@pytest.mark.parametrize(
    ("fields", "granted"),
    [
        ({"value": '{"decision":"allow"}'}, True),
        ({"value": '{"decision":"deny"}'}, False),
        ({"value": "?"}, False),
        ({"cancelled": True}, False),
    ],
)
def test_answer_of_another_client_settles_the_request(
    answer_first: bool, fields: dict[str, Any], granted: bool
) -> None:
    codec = codec_of(ADAPTER, "rpc")
    request = ({"type": "extension_ui_request", "id": "r", **gate()}, Source.STDOUT)
    answered = (reply("r", **fields), Source.STDIN)
    both = [answered, request] if answer_first else [request, answered]
    steps = [step for line, source in both for step in receive(codec, line, source=source)]
    assert facts_of(steps, facts.RequestResolved) == [facts.RequestResolved("r", granted)]
