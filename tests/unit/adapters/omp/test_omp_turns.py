"""What omp reports differently from pi: ends of turns, tools, approvals."""

import base64
from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import PROJECT, as_line, codec_of, facts_of, receive
from tests.unit.adapters.pi_family import (
    AGENT_START,
    PiConversation,
    agent_end,
    answer,
    call_block,
    failed,
    result,
    tool_end,
    tool_start,
    tool_update,
)
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, Codec, DenyAction, Exit, Interrupt, Refuse, Send
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.pi.rpc_codec import SHORTENED
from agent_mux_adapters.omp import ADAPTER
from agent_mux_adapters.omp.tools import split_mcp_name

ALL = Recordings(ADAPTER, "json")
TURNS = (facts.TurnBegin, facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
LAST = agent_end(isTerminal=True)


def codec(protocol: str = "json", **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


def running(**context: Any) -> PiConversation:
    talk = PiConversation(ADAPTER, interactive=True, **context)
    talk.receive_response("mux-1", "set_subagent_subscription")
    talk.receive_response("mux-2", "get_session_stats", sessionId="s", userMessages=0)
    talk.receive(AGENT_START)
    talk.sent()
    return talk


# -- turns


def test_is_terminal_marks_the_final_end() -> None:
    one = codec()
    assert facts_of(receive(one, AGENT_START, answer("wait"), agent_end(isTerminal=False)), *TURNS) == [
        facts.TurnBegin()
    ]
    assert facts_of(receive(one, AGENT_START, answer("done"), LAST), *TURNS) == [
        facts.TurnBegin(),
        facts.TurnDone(stop_reason="end"),
    ]


@pytest.mark.parametrize(
    ("ending", "last"), [(Exit(code=0), [facts.TurnDone(stop_reason="end")]), (Exit(signal=9), [])]
)
def test_exit_code_0_ends_the_turn(ending: Exit, last: list[Any]) -> None:
    one = codec()
    receive(one, AGENT_START, answer("wait"), agent_end(isTerminal=False))
    assert facts_of(one.finish(ending), *TURNS) == last


def test_api_error_fails_the_turn() -> None:
    failure = facts.Failure("RATE_LIMITED", "nope")
    lines = [AGENT_START, failed("nope", errorStatus=429), LAST]
    assert facts_of(receive(codec(), *lines), *TURNS)[1:] == [facts.TurnFailed(failure)]


def test_run_requests_statistics_instead_of_the_state() -> None:
    talk = PiConversation(ADAPTER)
    assert talk.sent() == [
        {"id": "mux-protocol", "type": "negotiate_protocol", "protocolVersion": 2},
        {"id": "mux-1", "type": "set_subagent_subscription", "level": "events"},
        {"id": "mux-2", "type": "get_session_stats"},
    ]
    talk.receive_response("mux-1", "set_subagent_subscription")
    assert facts_of(talk.receive_response("mux-2", "get_session_stats", sessionId="s")) == [facts.SessionKnown("s")]
    assert talk.sent() == [{"id": "mux-3", "type": "prompt", "message": "hello"}]
    talk.receive_response("mux-3", "prompt")
    talk.receive(AGENT_START, answer("hi"), LAST)
    assert talk.sent() == ["EOF"]


def test_continued_session_reports_its_turn_count() -> None:
    talk = PiConversation(ADAPTER, session_id="s")
    [known] = facts_of(talk.receive_response("mux-2", "get_session_stats", sessionId="s", userMessages=2))
    assert known == facts.SessionKnown("s", resumed=True, prior_turns=2)


def test_second_response_to_a_prompt_is_ignored() -> None:
    talk = running()
    talk.receive_response("mux-3", "prompt")
    assert facts_of(talk.receive_error("mux-3", "prompt", "Agent is already processing.")) == [
        facts.Note("omp refused prompt: Agent is already processing.", "warn")
    ]


@pytest.mark.parametrize("told_with_the_response", [True, False])
def test_command_without_model_call_is_a_turn(told_with_the_response: bool) -> None:
    talk = PiConversation(ADAPTER, prompt="/name x")
    talk.receive_response("mux-2", "get_session_stats", sessionId="s")
    if told_with_the_response:
        steps = talk.receive_response("mux-3", "prompt", agentInvoked=False)
    else:
        talk.receive_response("mux-3", "prompt")
        steps = talk.receive({"type": "prompt_result", "id": "mux-3", "agentInvoked": False})
    assert facts_of(steps, *TURNS) == [facts.TurnBegin(), facts.TurnDone()]
    assert talk.sent()[-1] == "EOF"


def test_prompt_result_with_model_call_is_ignored() -> None:
    assert facts_of(running().receive({"type": "prompt_result", "id": "mux-3", "agentInvoked": True})) == []


def test_fallback_model_is_a_warning() -> None:
    line = {"type": "retry_fallback_applied", "from": "a/b", "to": "c/d"}
    assert facts_of(receive(codec(), line)) == [facts.Note("the agent continues with c/d instead of a/b", "warn")]


@pytest.mark.parametrize(("level", "ours"), [("info", "info"), ("warning", "warn"), ("error", "warn")])
def test_notices_become_notes(level: str, ours: str) -> None:
    line = {"type": "notice", "level": level, "message": "look"}
    assert facts_of(receive(codec(), line)) == [facts.Note("look", ours)]


def test_chunked_lines_are_reassembled() -> None:
    whole = as_line(answer("hello"))
    parts = [whole[:20], whole[20:]]
    chunks = [
        {"type": "rpc_chunk", "chunkId": "k", "index": i, "count": 2, "data": base64.b64encode(part).decode()}
        for i, part in enumerate(parts)
    ]
    one = codec("rpc")
    assert facts_of(receive(one, chunks[0])) == []
    assert facts_of(receive(one, chunks[1])) == [facts.WholeText("hello")]
    [note] = facts_of(receive(one, chunks[1]))
    assert (note.level, "incomplete" in note.message) == ("warn", True)  # the first chunk is missing
    assert facts_of(receive(one, {**chunks[0], "chunkId": "l", "count": 1, "data": "A"})) == []  # not base64


def test_older_version_that_refuses_the_protocol_runs_without_a_warning() -> None:
    talk = PiConversation(ADAPTER)
    assert facts_of(talk.receive_error("mux-protocol", "negotiate_protocol", "Unknown command")) == []
    talk.receive_response("mux-2", "get_session_stats", sessionId="s")
    assert talk.sent()[-1] == {"id": "mux-3", "type": "prompt", "message": "hello"}


def test_shortened_text_is_a_warning_once_in_a_turn() -> None:
    talk = running()
    cut = answer("beginning\n\u2026[786432 chars elided for RPC frame]")
    notes = [fact for _ in range(2) for fact in facts_of(talk.receive(cut), facts.Note)]
    assert notes == [facts.Note(SHORTENED, "warn")]
    talk.receive(AGENT_START)
    assert facts_of(talk.receive(cut), facts.Note) == [facts.Note(SHORTENED, "warn")]


@pytest.mark.parametrize("quoted", ["[12 chars elided for RPC frame]", "\u2026[some chars elided for RPC frame]"])
def test_text_like_the_mark_of_a_shortened_line_is_no_warning(quoted: str) -> None:
    assert facts_of(running().receive(answer(quoted)), facts.Note) == []


def test_left_out_line_is_a_warning() -> None:
    line = {"type": "rpc_frame_error", "originalType": "message_end", "error": "RPC frame exceeded the transport limit"}
    [note] = facts_of(running().receive(line))
    assert note == facts.Note(
        "the agent left out a line of type message_end: RPC frame exceeded the transport limit", "warn"
    )


GAVE_UP = {"type": "notice", "level": "warning", "message": "freed too little", "source": "compaction"}
COMPACTION = ({"type": "auto_compaction_start"}, {"type": "auto_compaction_end", "willRetry": False})


def test_idle_agent_that_gave_up_compaction_ends_its_turn() -> None:
    """Until this test, the run waited for work that omp announced and never began."""
    talk = running()
    talk.receive(answer("hi"), *COMPACTION, GAVE_UP, agent_end(isTerminal=False))
    assert talk.sent() == [{"id": "mux-4", "type": "get_state"}]
    idle = {"isStreaming": False, "isCompacting": False, "queuedMessageCount": 0}
    assert facts_of(talk.receive_response("mux-4", "get_state", **idle), *TURNS) == [facts.TurnDone(stop_reason="end")]


@pytest.mark.parametrize("busy", [{"isStreaming": True}, {"isCompacting": True}, {"queuedMessageCount": 1}])
def test_busy_agent_that_gave_up_compaction_keeps_its_turn(busy: dict[str, Any]) -> None:
    talk = running()
    talk.receive(answer("hi"), *COMPACTION, GAVE_UP, agent_end(isTerminal=False))
    assert facts_of(talk.receive_response("mux-4", "get_state", **busy), *TURNS) == []
    assert facts_of(talk.receive(AGENT_START, answer("more"), LAST), *TURNS)[-1] == facts.TurnDone(stop_reason="end")


@pytest.mark.parametrize("before", [COMPACTION, (COMPACTION[0], GAVE_UP, COMPACTION[1])])
def test_successful_compaction_leaves_an_announced_continuation_alone(before: tuple[Any, ...]) -> None:
    talk = running()
    talk.receive(answer("hi"), *before, agent_end(isTerminal=False))
    assert talk.sent() == []


# -- tools


def of_call(name: str, arguments: dict[str, Any], *came: dict[str, Any], is_error: bool = False) -> list[Any]:
    lines = [tool_start("c", name, **arguments), *(tool_update("c", name, part) for part in came[:-1])]
    steps = receive(codec(), *lines, tool_end("c", name, came[-1], is_error=is_error))
    return facts_of(steps, facts.ToolReady, facts.ToolOutput, facts.ToolDone, facts.McpBegin, facts.McpDone, facts.Note)


def files(name: str, arguments: dict[str, Any], came: dict[str, Any]) -> tuple[Any, ...]:
    effects: tuple[Any, ...] = of_call(name, arguments, came)[-1].files
    return effects


def test_wall_time_below_the_output_is_split_off() -> None:
    came = [result("hi\n"), result("hi\n\n\nWall time: 0.04 seconds", wallTimeMs=44.7)]
    ready, output, done = of_call("bash", {"command": "echo hi", "cwd": "/tmp"}, *came)
    assert ready.shell == facts.ShellInvocation("echo hi", "/tmp")
    assert output == facts.ToolOutput("c", "hi\n")
    assert (done.duration_ms, done.exit_code) == (44, None)


@pytest.mark.parametrize(
    ("came", "printed", "code"),
    [
        (result("a\n\n\nWall time: 0.04 seconds", exitCode=3, wallTimeMs=4), "a\n", 3),
        (result("a\n\nCommand exited with code 3"), "a", 3),
        (result("a\n" * 9_999 + "\n\nCommand exited with code 3"), "a\n" * 9_999, 3),
        (result("[Command timed out after 2 seconds]"), "", None),
        (result("Tool call denied by user: bash"), "", None),
    ],
)
def test_status_below_the_output_is_split_off(came: dict[str, Any], printed: str, code: int | None) -> None:
    _, *output, done = of_call("bash", {"command": "x"}, came, is_error=True)
    assert "".join(fact.text for fact in output) == printed
    assert done.exit_code == code


def test_background_command_has_no_exit_code() -> None:
    [ready, _] = of_call("bash", {"command": "x", "async": True}, result("started"))
    assert ready.shell is None
    moved = result("Backgrounded as job bg_1", **{"async": {"jobId": "bg_1", "state": "running"}})
    assert of_call("bash", {"command": "x"}, moved)[-1].exit_code == -1


def test_read_file_is_named_by_the_result() -> None:
    source = {"source": {"type": "path", "value": f"{PROJECT}/a.txt"}}
    assert files("read", {"path": "a.txt:3-5"}, result("x", meta=source)) == (facts.FileRead(f"{PROJECT}/a.txt"),)
    assert files("read", {"path": "."}, result("x", meta=source, isDirectory=True)) == ()
    assert files("read", {"path": "https://x"}, result("x", meta={"source": {"type": "url", "value": "x"}})) == ()


def test_written_file_is_named_by_the_result() -> None:
    written = facts.FileWritten(f"{PROJECT}/a.txt", 2, True)
    came = result("ok", resolvedPath=f"{PROJECT}/a.txt", existedBefore=False)
    assert files("write", {"path": "a.txt", "content": "hi"}, came) == (written,)
    assert files("write", {"path": "xd://github", "content": "{}"}, result("ok")) == ()


def test_edits_deletions_and_moves_become_file_effects() -> None:
    place = f"{PROJECT}/a.txt"
    known = result("ok", path=place, oldText="a\nb\n", newText="a\nB\n", op="update")
    assert files("edit", {}, known) == (
        facts.FilePatched(place, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"),
    )
    long = result("ok", path=place, diff=" 1|a\n-2|b\n+2|B", op="update")
    assert files("edit", {}, long) == files("edit", {}, known)
    created = result("ok", path=place, newText="hi", op="create")
    assert files("edit", {}, created) == (facts.FileWritten(place, 2, True),)
    gone, moved = (
        {"path": place, "op": "delete"},
        {"path": place, "move": f"{PROJECT}/b.txt", "oldText": "a", "newText": "b"},
    )
    several = result("ok", perFileResults=[gone, moved, {"path": place, "isError": True}, {}])
    assert [type(effect).__name__ for effect in files("edit", {}, several)] == [
        "FileDeleted",
        "FileDeleted",
        "FilePatched",
    ]


# -- MCP


@pytest.mark.parametrize(
    ("name", "servers", "split"),
    [
        ("mcp__echo_echo", (), ("echo", "echo")),
        ("mcp__my_server_do_it", (), ("my", "server_do_it")),
        ("mcp__my_server_do_it", ("my-server", "my"), ("my-server", "do_it")),
        ("mcp__my_server_do_it", ("My_Server",), ("My_Server", "do_it")),
        ("mcp__echo_echo", ("other",), ("echo", "echo")),
        ("mcp__echo", (), None),
        ("bash", ("bash",), None),
    ],
)
def test_known_servers_split_mcp_tool_names(name: str, servers: tuple[str, ...], split: tuple[str, str] | None) -> None:
    assert split_mcp_name(name, servers) == split


def test_mcp_calls_are_recognized() -> None:
    one = codec("rpc", mcp_servers=(McpServer(name="my-server", command="x"),))
    lines = [answer(call_block("c", "mcp__my_server_do_it", a=1)), tool_end("c", "mcp__my_server_do_it", result("ok"))]
    assert facts_of(receive(one, *lines)) == [
        facts.McpBegin("c", "my-server", "do_it", {"a": 1}),
        facts.McpDone("c", "ok"),
    ]
    failing = tool_end("d", "mcp__my_server_do_it", result("boom"), is_error=True)
    assert facts_of(receive(one, failing)) == [facts.McpDone("d", error="boom")]


# -- permissions and questions


def gate(tool: str, *details: str) -> dict[str, Any]:
    return {"title": "\n".join([f"Allow tool: {tool}", *details]), "options": ["Approve", "Deny"]}


@pytest.mark.parametrize(
    ("title", "action", "detail", "risk"),
    [
        (gate("bash", "Command: rm -rf x"), "Run a shell command", "rm -rf x", "high"),
        (gate("write", "Path: a.txt"), "Write a file", "Path: a.txt", "medium"),
        (gate("mcp__echo_echo"), "Use echo of the MCP server echo", "mcp__echo_echo", "medium"),
        (gate("browser", "open"), "Use browser", "open", "high"),
    ],
)
def test_approval_dialog_is_recognized(title: dict[str, Any], action: str, detail: str, risk: str) -> None:
    [request] = facts_of(running().receive_request("r", "select", **title))
    assert (request.action, request.detail, request.risk) == (action, detail, risk)


@pytest.mark.parametrize(
    ("title", "command", "paths"),
    [
        (gate("bash", "Command: rm -rf x"), "rm -rf x", ()),
        (gate("write", "Path: a.txt", "Content:\nPath: b.txt"), None, ("a.txt",)),
        (gate("edit", "File: a.txt", "File: b: c.txt"), None, ("a.txt", "b: c.txt")),
        (gate("edit", "File: (unknown)"), None, ()),
    ],
)
def test_dialog_shows_detail_and_paths(title: dict[str, Any], command: str | None, paths: tuple[str, ...]) -> None:
    [request] = facts_of(running().receive_request("r", "select", **title))
    assert (request.command, request.paths) == (command, paths)


def test_approval_belongs_to_first_pending_call_of_its_tool() -> None:
    talk = running()
    talk.receive(answer(call_block("a", "bash", command="x"), call_block("b", "bash", command="y")))
    [first] = facts_of(talk.receive_request("r", "select", **gate("bash", "Command: x")))
    [second] = facts_of(talk.receive_request("s", "select", **gate("bash", "Command: y")))
    [third] = facts_of(talk.receive_request("t", "select", **gate("bash", "Command: z")))
    assert (first.call_id, second.call_id, third.call_id) == ("a", "b", None)


def test_dialog_without_detail_shows_the_call_input() -> None:
    talk = running()
    talk.receive(answer(call_block("a", "mcp__echo_echo", text="hi")))
    [request] = facts_of(talk.receive_request("r", "select", **gate("mcp__echo_echo")))
    assert (request.call_id, request.detail) == ("a", '{"text":"hi"}')


@pytest.mark.parametrize(("action", "value"), [(ApproveAction("r"), "Approve"), (DenyAction("r", "no"), "Deny")])
def test_decision_selects_an_option(action: Any, value: str) -> None:
    talk = running()
    talk.receive_request("r", "select", **gate("bash", "Command: x"))
    talk.request(action)
    assert talk.sent() == [{"type": "extension_ui_response", "id": "r", "value": value}]


def test_tool_allowed_for_the_run_is_not_asked_again() -> None:
    talk = running()
    talk.receive_request("r", "select", **gate("bash", "Command: x"))
    talk.request(ApproveAction("r", always=True))
    talk.sent()
    assert facts_of(talk.receive_request("s", "select", **gate("bash", "Command: y"))) == [
        facts.Note("bash was allowed for the rest of the run", "verbose")
    ]
    assert talk.sent() == [{"type": "extension_ui_response", "id": "s", "value": "Approve"}]
    assert facts_of(talk.receive_request("t", "select", **gate("write")), facts.ApprovalRequested)


def test_free_text_answer_goes_through_the_editor() -> None:
    talk = running()
    request = facts_of(talk.receive_request("q", "select", title="Which?", options=["red", "Other (type your own)"]))
    assert request == [facts.InputRequested("q", "Which?", options=("red",), source="tool")]
    talk.request(AnswerAction("q", "blue"))
    assert talk.sent() == [{"type": "extension_ui_response", "id": "q", "value": "Other (type your own)"}]
    assert facts_of(talk.receive_request("e", "editor", title="Which?")) == []
    assert talk.sent() == [{"type": "extension_ui_response", "id": "e", "value": "blue"}]


def test_interrupt_sends_abort() -> None:
    talk = running()
    talk.request(Interrupt())
    assert talk.sent() == [{"id": "mux-4", "type": "abort"}]
    steps = talk.receive(answer("so fa", stopReason="aborted"), LAST)
    assert facts_of(steps, *TURNS) == [facts.TurnStopped()]
    talk.request(Send("go on"))
    assert talk.sent() == [{"id": "mux-5", "type": "prompt", "message": "go on"}]


def test_json_mode_refuses_answers() -> None:
    [refused] = codec().request(ApproveAction("r"))
    assert isinstance(refused, Refuse)
