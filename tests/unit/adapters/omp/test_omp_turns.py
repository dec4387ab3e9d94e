"""What omp tells otherwise than pi: ends of turns, tools, permissions."""

import base64
from typing import Any

import pytest
from tests.unit.adapters.pi_family import (
    BEGINS,
    Talk,
    agent_end,
    answer,
    call_block,
    ends,
    failed,
    goes_on,
    result,
    starts,
)
from tests.unit.adapters.recordings import Recordings
from tests.unit.adapters.talking import PLACE, as_line, codec_of, facts_of, receive

from agent_mux import facts
from agent_mux.actions import Answer, Approve, Deny, Interrupt, Send
from agent_mux.adapter import Codec, Exit
from agent_mux.effects import Refuse
from agent_mux.options import McpServer
from agent_mux_adapters.omp import ADAPTER
from agent_mux_adapters.omp.tools import split_mcp_name

ALL = Recordings(ADAPTER, "json")
TURNS = (facts.TurnBegin, facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
LAST = agent_end(isTerminal=True)


def codec(protocol: str = "json", **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


def running(**context: Any) -> Talk:
    talk = Talk(ADAPTER, interactive=True, **context)
    talk.answers("mux-1", "set_subagent_subscription")
    talk.answers("mux-2", "get_session_stats", sessionId="s", userMessages=0)
    talk.says(BEGINS)
    talk.sent()
    return talk


# -- turns


def test_the_end_itself_says_whether_it_is_the_last() -> None:
    one = codec()
    assert facts_of(receive(one, BEGINS, answer("wait"), agent_end(isTerminal=False)), *TURNS) == [facts.TurnBegin()]
    assert facts_of(receive(one, BEGINS, answer("done"), LAST), *TURNS) == [facts.TurnBegin(), facts.TurnDone()]


@pytest.mark.parametrize(("ending", "last"), [(Exit(code=0), [facts.TurnDone()]), (Exit(signal=9), [])])
def test_an_agent_that_leaves_in_peace_has_ended_its_turn(ending: Exit, last: list[Any]) -> None:
    one = codec()
    receive(one, BEGINS, answer("wait"), agent_end(isTerminal=False))
    assert facts_of(one.finish(ending), *TURNS) == last


def test_an_error_of_the_api_fails_the_turn() -> None:
    failure = facts.Failure("RATE_LIMITED", "nope")
    lines = [BEGINS, failed("nope", errorStatus=429), LAST]
    assert facts_of(receive(codec(), *lines), *TURNS)[1:] == [facts.TurnFailed(failure)]


def test_a_run_asks_for_the_statistics_and_not_for_the_long_state() -> None:
    talk = Talk(ADAPTER)
    assert talk.sent() == [
        {"id": "mux-1", "type": "set_subagent_subscription", "level": "events"},
        {"id": "mux-2", "type": "get_session_stats"},
    ]
    talk.answers("mux-1", "set_subagent_subscription")
    assert facts_of(talk.answers("mux-2", "get_session_stats", sessionId="s")) == [facts.SessionKnown("s")]
    assert talk.sent() == [{"id": "mux-3", "type": "prompt", "message": "hello"}]
    talk.answers("mux-3", "prompt")
    talk.says(BEGINS, answer("hi"), LAST)
    assert talk.sent() == ["EOF"]


def test_a_continued_session_says_how_many_turns_it_has() -> None:
    talk = Talk(ADAPTER, session_id="s")
    [known] = facts_of(talk.answers("mux-2", "get_session_stats", sessionId="s", userMessages=2))
    assert known == facts.SessionKnown("s", resumed=True, prior_turns=2)


def test_a_busy_agent_answers_a_prompt_twice() -> None:
    talk = running()
    talk.answers("mux-3", "prompt")
    assert facts_of(talk.refuses("mux-3", "prompt", "Agent is already processing.")) == [
        facts.Note("omp refused prompt: Agent is already processing.", "warn")
    ]


@pytest.mark.parametrize("told_with_the_response", [True, False])
def test_a_command_that_needs_no_model_is_a_turn_all_the_same(told_with_the_response: bool) -> None:
    talk = Talk(ADAPTER, prompt="/name x")
    talk.answers("mux-2", "get_session_stats", sessionId="s")
    if told_with_the_response:
        steps = talk.answers("mux-3", "prompt", agentInvoked=False)
    else:
        talk.answers("mux-3", "prompt")
        steps = talk.says({"type": "prompt_result", "id": "mux-3", "agentInvoked": False})
    assert facts_of(steps, *TURNS) == [facts.TurnBegin(), facts.TurnDone()]
    assert talk.sent()[-1] == "EOF"


def test_a_prompt_that_the_model_answers_says_nothing_by_itself() -> None:
    assert facts_of(running().says({"type": "prompt_result", "id": "mux-3", "agentInvoked": True})) == []


def test_another_model_is_a_warning() -> None:
    line = {"type": "retry_fallback_applied", "from": "a/b", "to": "c/d"}
    assert facts_of(receive(codec(), line)) == [facts.Note("the agent continues with c/d instead of a/b", "warn")]


@pytest.mark.parametrize(("level", "ours"), [("info", "info"), ("warning", "warn"), ("error", "warn")])
def test_notices_are_notes(level: str, ours: str) -> None:
    line = {"type": "notice", "level": level, "message": "look"}
    assert facts_of(receive(codec(), line)) == [facts.Note("look", ours)]


def test_long_lines_come_in_parts() -> None:
    whole = as_line(answer("hello"))
    parts = [whole[:20], whole[20:]]
    chunks = [
        {"type": "rpc_chunk", "chunkId": "k", "index": i, "count": 2, "data": base64.b64encode(part).decode()}
        for i, part in enumerate(parts)
    ]
    one = codec("rpc")
    assert facts_of(receive(one, chunks[0])) == []
    assert facts_of(receive(one, chunks[1])) == [facts.Text("hello")]
    assert facts_of(receive(one, chunks[1])) == []  # its beginning is missing
    assert facts_of(receive(one, {**chunks[0], "chunkId": "l", "count": 1, "data": "A"})) == []  # no base64


# -- tools


def of_call(name: str, arguments: dict[str, Any], *came: dict[str, Any], is_error: bool = False) -> list[Any]:
    lines = [starts("c", name, **arguments), *(goes_on("c", name, part) for part in came[:-1])]
    steps = receive(codec(), *lines, ends("c", name, came[-1], is_error=is_error))
    return facts_of(steps, facts.ToolReady, facts.ToolOutput, facts.ToolDone, facts.McpBegin, facts.McpDone, facts.Note)


def files(name: str, arguments: dict[str, Any], came: dict[str, Any]) -> tuple[Any, ...]:
    effects: tuple[Any, ...] = of_call(name, arguments, came)[-1].files
    return effects


def test_a_command_has_its_time_below_its_output() -> None:
    came = [result("hi\n"), result("hi\n\n\nWall time: 0.04 seconds", wallTimeMs=44.7)]
    ready, output, done = of_call("bash", {"command": "echo hi", "cwd": "/tmp"}, *came)
    assert ready.shell == facts.Shell("echo hi", "/tmp")
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
def test_a_failed_command_says_how_below_its_output(came: dict[str, Any], printed: str, code: int | None) -> None:
    _, *output, done = of_call("bash", {"command": "x"}, came, is_error=True)
    assert "".join(fact.text for fact in output) == printed
    assert done.exit_code == code


def test_a_command_in_the_background_is_no_command_whose_exit_is_told() -> None:
    [ready, _] = of_call("bash", {"command": "x", "async": True}, result("started"))
    assert ready.shell is None
    moved = result("Backgrounded as job bg_1", **{"async": {"jobId": "bg_1", "state": "running"}})
    assert of_call("bash", {"command": "x"}, moved)[-1].exit_code == -1


def test_a_file_that_was_read_is_named_by_the_result() -> None:
    source = {"source": {"type": "path", "value": f"{PLACE}/a.txt"}}
    assert files("read", {"path": "a.txt:3-5"}, result("x", meta=source)) == (facts.FileRead(f"{PLACE}/a.txt"),)
    assert files("read", {"path": "."}, result("x", meta=source, isDirectory=True)) == ()
    assert files("read", {"path": "https://x"}, result("x", meta={"source": {"type": "url", "value": "x"}})) == ()


def test_a_file_that_was_written_is_named_by_the_result() -> None:
    written = facts.FileWritten(f"{PLACE}/a.txt", 2, True)
    came = result("ok", resolvedPath=f"{PLACE}/a.txt", existedBefore=False)
    assert files("write", {"path": "a.txt", "content": "hi"}, came) == (written,)
    assert files("write", {"path": "xd://github", "content": "{}"}, result("ok")) == ()


def test_edits_tell_whole_texts_or_diffs_for_people_and_deletions_and_moves() -> None:
    place = f"{PLACE}/a.txt"
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
        {"path": place, "move": f"{PLACE}/b.txt", "oldText": "a", "newText": "b"},
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
def test_the_servers_of_the_run_tell_where_the_name_of_a_tool_begins(
    name: str, servers: tuple[str, ...], split: tuple[str, str] | None
) -> None:
    assert split_mcp_name(name, servers) == split


def test_mcp_calls_are_told_as_such() -> None:
    one = codec("rpc", mcp_servers=(McpServer(name="my-server", command="x"),))
    lines = [answer(call_block("c", "mcp__my_server_do_it", a=1)), ends("c", "mcp__my_server_do_it", result("ok"))]
    assert facts_of(receive(one, *lines)) == [
        facts.McpBegin("c", "my-server", "do_it", {"a": 1}),
        facts.McpDone("c", "ok"),
    ]
    failing = ends("d", "mcp__my_server_do_it", result("boom"), is_error=True)
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
def test_a_dialog_of_omp_that_asks_for_permission(title: dict[str, Any], action: str, detail: str, risk: str) -> None:
    [request] = facts_of(running().asks("r", "select", **title))
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
def test_a_dialog_shows_what_it_is_about(title: dict[str, Any], command: str | None, paths: tuple[str, ...]) -> None:
    [request] = facts_of(running().asks("r", "select", **title))
    assert (request.command, request.paths) == (command, paths)


def test_a_permission_is_about_the_first_call_of_that_tool_that_waits() -> None:
    talk = running()
    talk.says(answer(call_block("a", "bash", command="x"), call_block("b", "bash", command="y")))
    [first] = facts_of(talk.asks("r", "select", **gate("bash", "Command: x")))
    [second] = facts_of(talk.asks("s", "select", **gate("bash", "Command: y")))
    [third] = facts_of(talk.asks("t", "select", **gate("bash", "Command: z")))
    assert (first.call_id, second.call_id, third.call_id) == ("a", "b", None)


def test_a_dialog_that_says_nothing_shows_the_input_of_the_call() -> None:
    talk = running()
    talk.says(answer(call_block("a", "mcp__echo_echo", text="hi")))
    [request] = facts_of(talk.asks("r", "select", **gate("mcp__echo_echo")))
    assert (request.call_id, request.detail) == ("a", '{"text":"hi"}')


@pytest.mark.parametrize(("action", "value"), [(Approve("r"), "Approve"), (Deny("r", "no"), "Deny")])
def test_the_decision_is_a_choice(action: Any, value: str) -> None:
    talk = running()
    talk.asks("r", "select", **gate("bash", "Command: x"))
    talk.want(action)
    assert talk.sent() == [{"type": "extension_ui_response", "id": "r", "value": value}]


def test_what_was_allowed_for_the_rest_of_the_run_is_not_asked_again() -> None:
    talk = running()
    talk.asks("r", "select", **gate("bash", "Command: x"))
    talk.want(Approve("r", always=True))
    talk.sent()
    assert facts_of(talk.asks("s", "select", **gate("bash", "Command: y"))) == [
        facts.Note("bash was allowed for the rest of the run", "verbose")
    ]
    assert talk.sent() == [{"type": "extension_ui_response", "id": "s", "value": "Approve"}]
    assert facts_of(talk.asks("t", "select", **gate("write")), facts.ApprovalAsked)


def test_a_question_may_be_answered_in_own_words_by_way_of_an_editor() -> None:
    talk = running()
    request = facts_of(talk.asks("q", "select", title="Which?", options=["red", "Other (type your own)"]))
    assert request == [facts.InputAsked("q", "Which?", options=("red",), source="tool")]
    talk.want(Answer("q", "blue"))
    assert talk.sent() == [{"type": "extension_ui_response", "id": "q", "value": "Other (type your own)"}]
    assert facts_of(talk.asks("e", "editor", title="Which?")) == []
    assert talk.sent() == [{"type": "extension_ui_response", "id": "e", "value": "blue"}]


def test_an_interruption_is_an_abort() -> None:
    talk = running()
    talk.want(Interrupt())
    assert talk.sent() == [{"id": "mux-4", "type": "abort"}]
    steps = talk.says(answer("so fa", stopReason="aborted"), LAST)
    assert facts_of(steps, *TURNS) == [facts.TurnStopped()]
    talk.want(Send("go on"))
    assert talk.sent() == [{"id": "mux-5", "type": "prompt", "message": "go on"}]


def test_json_mode_takes_no_answers() -> None:
    [refused] = codec().request(Approve("r"))
    assert isinstance(refused, Refuse)
