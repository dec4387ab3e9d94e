"""Our side of the conversation, read like a transcript."""

import signal
from typing import Any

import pytest
from acp_transcript import ABLE, CANCEL, OWN, AcpConversation, prompt
from tests.unit.adapters.codec_conversation import PROJECT

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Cancel, Close, Interrupt, Refuse, Send, SignalGroup, Steer
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.acp import AcpQuirks, AcpRequest, OpenedSession
from agent_mux_adapters._dialects.acp.requests import initialize_params

NEW = {"cwd": PROJECT, "mcpServers": []}
END = {"stopReason": "end_turn"}
OFFERED = {
    "modes": {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "yolo"}]},
    "models": {"currentModelId": "big", "availableModels": [{"modelId": "big"}, {"modelId": "small"}]},
}
OPTIONS = {
    "configOptions": [
        {"id": "m", "category": "model", "currentValue": "fake/big",
         "options": [{"value": "fake/big"}, {"group": "g", "options": [{"value": "fake/small"}]}]},
        {"id": "t", "category": "thought_level", "currentValue": "low",
         "options": [{"value": "low"}, {"value": "high"}, {"value": "xhigh"}]},
    ]
}  # fmt: skip


def test_a_one_turn_run_from_handshake_to_the_end_of_input() -> None:
    talk = AcpConversation()
    [hello] = talk.sent()
    assert hello["method"] == "initialize"
    assert hello["params"]["protocolVersion"] == 1
    assert hello["params"]["clientInfo"]["name"] == "agent-mux"
    talk.receive_response(1, {"protocolVersion": 1, "agentCapabilities": ABLE})
    assert talk.sent() == [{"id": 2, "method": "session/new", "params": NEW}]
    talk.receive_response(2, {"sessionId": OWN, **OFFERED})
    assert talk.sent() == [prompt(3, "hello")]
    talk.speaks("hi")
    assert talk.sent() == []
    talk.receive_response(3, END)
    assert talk.sent() == ["EOF"]
    assert talk.facts() == [
        facts.SessionKnown(OWN, model="big"), facts.StepBegin(), facts.TextDelta("hi"),
        facts.TurnDone(stop_reason="end"),
    ]  # fmt: skip


def test_handshake_offers_no_files_or_terminal_and_announces_questions() -> None:
    for mode, asks in (("prompt", True), ("yolo", False), ("deny", False)):
        [hello] = AcpConversation(approval_mode=mode).sent()
        able = hello["params"]["clientCapabilities"]
        assert (able["fs"], able["terminal"]) == ({"readTextFile": False, "writeTextFile": False}, False)
        assert ("elicitation" in able) is asks
    assert "elicitation" not in initialize_params({}, asks_questions=False)["clientCapabilities"]


def test_an_adapter_can_log_in_before_the_session_is_opened() -> None:
    talk = AcpConversation(AcpQuirks(login=lambda _context, offered: offered[-1]))
    talk.sent()
    talk.receive_response(1, {"protocolVersion": 1, "authMethods": [{"id": "a"}, {"id": "key"}]})
    assert talk.sent() == [{"id": 2, "method": "authenticate", "params": {"methodId": "key"}}]
    talk.receive_response(2, {})
    assert talk.sent() == [{"id": 3, "method": "session/new", "params": NEW}]
    failed = AcpConversation(AcpQuirks(login=lambda _context, _offered: "key"))
    failed.receive_response(1, {})
    failed.receive_error(2, "no such key")
    assert failed.facts(facts.TurnFailed)
    assert failed.sent()[-1] == "EOF"


@pytest.mark.parametrize(
    ("context", "able", "method"),
    [
        ({"session_id": "old"}, ABLE, "session/load"),
        ({"session_id": "old"}, {"sessionCapabilities": {"resume": {}}}, "session/resume"),
        ({"fork_session_id": "old"}, ABLE, "session/fork"),
    ],
)
def test_an_older_session_is_continued_or_forked(context: Any, able: Any, method: str) -> None:
    talk = AcpConversation(**context)
    talk.receive_response(1, {"agentCapabilities": able})
    assert talk.sent()[1:] == [{"id": 2, "method": method, "params": {"sessionId": "old", **NEW}}]
    talk.receive_response(2, {"sessionId": "new"} if method == "session/fork" else {})
    [known] = talk.facts(facts.SessionKnown)
    is_fork = method == "session/fork"
    assert known == facts.SessionKnown(
        "new" if is_fork else "old", resumed=not is_fork, forked_from="old" if is_fork else None
    )


def test_an_adapter_chooses_how_sessions_are_continued() -> None:
    talk = AcpConversation(AcpQuirks(continues_with="resume"), session_id="old")
    talk.receive_response(1, {"agentCapabilities": ABLE})
    assert talk.sent()[1]["method"] == "session/resume"


@pytest.mark.parametrize("context", [{"session_id": "old"}, {"fork_session_id": "old"}])
def test_unsupported_session_operation_fails_the_run(context: Any) -> None:
    talk = AcpConversation(**context)
    talk.receive_response(1, {"agentCapabilities": {}})
    [failed] = talk.facts(facts.TurnFailed)
    assert failed.failure.code == "CAPABILITY_ERROR"
    assert talk.sent()[-1] == "EOF"


def test_replayed_history_is_counted_and_not_emitted() -> None:
    talk = AcpConversation(session_id=OWN)
    talk.receive_response(1, {"agentCapabilities": ABLE})
    for kind, text in (
        *(("user_message_chunk", "first, "), ("user_message_chunk", "in two parts")),
        *(("agent_message_chunk", "one"), ("user_message_chunk", "second"), ("agent_thought_chunk", "two")),
    ):
        emitted = talk.receive_update(kind, content={"type": "text", "text": text})
        assert emitted == [facts.Ignored(kind, "history before this run")]
    assert isinstance(talk.receive_update("tool_call", toolCallId="t", title="bash")[0], facts.Ignored)
    talk.receive_response(2, {"models": {"currentModelId": "big"}})
    assert talk.facts() == [facts.SessionKnown(OWN, resumed=True, prior_turns=2, model="big")]


def test_prompt_waits_for_history_that_continues_after_the_response() -> None:
    talk = AcpConversation(AcpQuirks(history_ends_with="available_commands_update"), session_id=OWN)
    talk.receive_response(1, {"agentCapabilities": ABLE})
    talk.receive_response(2, {})
    assert isinstance(talk.speaks("of yesterday")[0], facts.Ignored)
    talk.sent()
    talk.receive_update("available_commands_update", availableCommands=[])
    assert talk.sent() == [prompt(3, "hello")]
    assert talk.speaks("of today")[-1] == facts.TextDelta("of today")


def test_model_and_effort_are_set_before_the_first_prompt() -> None:
    talk = AcpConversation(model="small", thinking_effort="max").opened(**OPTIONS)
    model, effort = talk.sent()[2:]
    assert model["params"] == {"sessionId": OWN, "configId": "m", "value": "fake/small"}
    assert effort["params"] == {"sessionId": OWN, "configId": "t", "value": "xhigh"}
    talk.receive_response(3, {"configOptions": []})
    assert talk.sent() == []
    talk.receive_error(4, "no")
    assert talk.facts(facts.Note) == [facts.Note("x refused session/set_config_option: no", "warn")]
    assert talk.sent() == [prompt(5, "hello")]


def test_the_older_way_of_choosing_a_model_is_used_where_there_is_no_other() -> None:
    talk = AcpConversation(model="small", thinking_effort="low").opened(**OFFERED)
    [asked] = talk.sent()[2:]
    assert asked == {"id": 3, "method": "session/set_model", "params": {"sessionId": OWN, "modelId": "small"}}


@pytest.mark.parametrize("session", [OFFERED, OPTIONS, {}])
def test_settings_in_effect_are_not_requested(session: Any) -> None:
    talk = AcpConversation(model="big", thinking_effort="low" if "configOptions" in session else "medium").opened(
        **session
    )
    assert talk.sent()[2:] == [prompt(3, "hello")]


@pytest.mark.parametrize("session", [{}, {"configOptions": [{"id": "t", "category": "thought_level", "options": []}]}])
def test_unavailable_setting_emits_a_note(session: Any) -> None:
    talk = AcpConversation(model="small", thinking_effort="high").opened(**session)
    assert talk.sent()[2:] == [prompt(3, "hello")]
    assert talk.facts(facts.Note) == [
        facts.Note("the agent does not let a client choose the model: small is ignored", "warn"),
        facts.Note("the agent offers no thinking effort 'high': ignored", "warn"),
    ]


def test_an_adapter_has_settings_of_its_own() -> None:
    def settings(_: Any, opened: OpenedSession) -> list[AcpRequest]:
        return [opened.set_mode("yolo")]

    talk = AcpConversation(AcpQuirks(settings=settings)).opened(**OFFERED)
    assert talk.sent()[2:] == [{"id": 3, "method": "session/set_mode", "params": {"sessionId": OWN, "modeId": "yolo"}}]


def test_prompts_are_sent_one_at_a_time() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.request(Send("second"))
    talk.request(Send("third"))
    assert talk.sent() == []
    talk.receive_response(3, END)
    assert talk.sent() == [prompt(4, "second")]
    talk.receive_response(4, END)
    assert talk.sent() == [prompt(5, "third")]
    talk.receive_response(5, END)
    assert talk.sent() == []
    talk.request(Send("fourth"))
    talk.request(Close())
    assert talk.sent() == [prompt(6, "fourth")]
    talk.receive_response(6, END)
    assert talk.sent() == ["EOF"]
    [refusal] = talk.request(Send("too late"))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "STDIN_NOT_AVAILABLE"


def test_an_interactive_run_may_begin_without_a_prompt() -> None:
    talk = AcpConversation(prompt="", interactive=True).opened()
    assert [message["method"] for message in talk.sent()] == ["initialize", "session/new"]
    talk.request(Close())
    assert talk.sent() == ["EOF"]


def test_attachments_and_the_system_prompt_go_with_the_first_prompt_only() -> None:
    places = ("data:image/png;base64,AAAA", "file:///home/dev/notes.txt", "/home/dev/b.pdf", "https://x/a.png?b=c")
    talk = AcpConversation(images=places, system_prompt="be brief", interactive=True).opened()
    assert talk.sent()[-1] == prompt(
        3,
        "be brief\n\nhello",
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource_link", "uri": "file:///home/dev/notes.txt", "name": "notes.txt", "mimeType": "text/plain"},
        {"type": "resource_link", "uri": "file:///home/dev/b.pdf", "name": "b.pdf", "mimeType": "application/pdf"},
        {"type": "resource_link", "uri": "https://x/a.png?b=c", "name": "a.png", "mimeType": "image/png"},
    )
    talk.receive_response(3, END)
    talk.request(Send("again"))
    assert talk.sent() == [prompt(4, "again")]


def test_unsupported_image_is_left_out_with_a_note() -> None:
    talk = AcpConversation(images=("data:image/png;base64,AAAA",)).opened({})
    assert talk.sent()[-1] == prompt(3, "hello")
    assert [note.level for note in talk.facts(facts.Note)] == ["warn"]


def test_adapter_may_pass_the_system_prompt_itself() -> None:
    talk = AcpConversation(AcpQuirks(takes_system_prompt=False), system_prompt="be brief").opened()
    assert talk.sent()[-1] == prompt(3, "hello")


def test_mcp_servers_with_supported_transport_are_passed() -> None:
    servers = (
        McpServer("files", command="/bin/files", args=("-x",), env={"KEY": "secret"}),
        McpServer("web", transport="streamable-http", url="https://x/mcp", headers={"Authorization": "secret"}),
        McpServer("old", transport="sse", url="https://x/sse"),
    )
    talk = AcpConversation(mcp_servers=servers).opened()
    assert talk.sent()[1]["params"]["mcpServers"] == [
        {"name": "files", "command": "/bin/files", "args": ["-x"], "env": [{"name": "KEY", "value": "secret"}]},
        {"type": "http", "name": "web", "url": "https://x/mcp",
         "headers": [{"name": "Authorization", "value": "secret"}]},
    ]  # fmt: skip
    [note] = talk.facts(facts.Note)
    assert "old" in note.message


@pytest.mark.parametrize(
    ("quirks", "servers", "signals"),
    [
        ({}, True, False),
        ({"signal_with_servers": signal.SIGTERM}, False, False),
        ({"signal_with_servers": signal.SIGTERM}, True, True),
        ({"signal_at_end": signal.SIGTERM}, False, True),
    ],
)
def test_agent_that_does_not_exit_is_signalled(quirks: Any, servers: bool, signals: bool) -> None:
    given = (McpServer("files", command="/bin/files"),) if servers else ()
    talk = AcpConversation(AcpQuirks(**quirks), mcp_servers=given).prompted()
    talk.receive_response(3, END)
    assert talk.sent() == ["EOF", *([SignalGroup(signal.SIGTERM)] if signals else [])]


def test_interruption_cancels_the_turn_and_the_run_continues() -> None:
    talk = AcpConversation(interactive=True).prompted()
    assert talk.request(Interrupt())
    assert talk.sent() == [CANCEL]
    assert talk.request(Interrupt()) == []
    talk.request(Send("next"))
    talk.receive_response(3, {"stopReason": "cancelled"})
    assert talk.facts(facts.TurnStopped)
    assert talk.sent() == [prompt(4, "next")]


def test_an_interruption_before_the_prompt_is_sent_comes_right_after_it() -> None:
    talk = AcpConversation(interactive=True)
    talk.request(Interrupt())
    talk.opened()
    assert talk.sent()[-2:] == [prompt(3, "hello"), CANCEL]


def test_nothing_is_interrupted_when_nothing_runs() -> None:
    talk = AcpConversation(prompt="", interactive=True).opened()
    [note] = talk.request(Interrupt())
    assert isinstance(note, facts.Note)


def test_an_error_in_place_of_the_answer_to_a_cancelled_prompt_is_the_interruption() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.request(Interrupt())
    talk.receive_error(3, "Internal error")
    assert [type(fact) for fact in talk.facts()] == [facts.Note, facts.TurnStopped]


def test_an_aborted_run_cancels_the_turn_and_sends_nothing_more() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.request(Send("never"))
    talk.request(Cancel())
    assert talk.sent() == [CANCEL]
    talk.receive_response(3, {"stopReason": "cancelled"})
    assert talk.sent() == ["EOF"]
    idle = AcpConversation(prompt="", interactive=True).opened()
    idle.sent()
    idle.request(Cancel())
    assert idle.sent() == ["EOF"]


def test_steering_a_running_turn_is_refused() -> None:
    talk = AcpConversation(interactive=True).prompted()
    [refusal] = talk.request(Steer("faster"))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "CAPABILITY_ERROR"
    talk.receive_response(3, END)
    talk.sent()
    talk.request(Steer("now it is a prompt"))
    assert talk.sent() == [prompt(4, "now it is a prompt")]


@pytest.mark.parametrize(
    ("number", "code", "message", "expected"),
    [
        (1, -32600, "unsupported version", "AGENT_CRASH"),
        (2, -32000, "Authentication required", "AUTH_ERROR"),
        (2, -32002, "Resource not found: old", "SESSION_NOT_FOUND"),
        (2, -32603, "Session not found", "SESSION_NOT_FOUND"),
    ],
)
def test_a_handshake_that_fails_ends_the_run(number: int, code: int, message: str, expected: str) -> None:
    talk = AcpConversation()
    if number > 1:
        talk.receive_response(1, {"agentCapabilities": ABLE})
    talk.sent()
    talk.receive_error(number, message, code)
    [failed] = talk.facts(facts.TurnFailed)
    assert (failed.failure.code, failed.failure.message) == (expected, message)
    assert talk.sent() == ["EOF"]


def test_session_without_id_fails_the_run() -> None:
    talk = AcpConversation()
    talk.receive_response(1, {})
    talk.receive_response(2, {})
    assert talk.facts(facts.TurnFailed)
    assert talk.sent()[-1] == "EOF"


def test_blank_prompts_are_not_sent() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.request(Send("  "))
    talk.receive_response(3, END)
    assert talk.sent() == []
