"""Rollouts in all the ways in which releases of Codex have stored a thread; see also tests/stores/README.md."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sdk import zstandard
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.conversation import ToolUse
from agent_mux.sessions.library import SkippedFile

THREAD = "01a206d6-5ee8-7a01-a5e9-fb73cacca8f5"
OLDER = Path(__file__).parents[3] / "stores" / "older" / "codex"


class Home:
    """A home directory with rollouts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped: list[SkippedFile] = []
        self.sessions = Sessions(environ={"HOME": str(path)}, on_skipped=self.skipped.append)

    def rollout(self, *payloads: dict[str, Any], thread: str = THREAD, place: str = "sessions/2026/11/23") -> Path:
        path = self.path / ".codex" / place / f"rollout-2026-11-23T05-17-22-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = {"type": "session_meta", "payload": {"id": thread, "cwd": "/w", "cli_version": "0.47.0"}}
        path.write_text("".join(json.dumps(line) + "\n" for line in stamped([meta, *payloads])))
        return path

    def tools(self) -> list[ToolUse]:
        [summary] = self.sessions.list()
        assert validate(list(self.sessions.events(summary.id))) == []
        return [tool for message in self.sessions.get(summary.id).messages for tool in message.tools]

    def texts(self) -> list[str]:
        [summary] = self.sessions.list()
        assert validate(list(self.sessions.events(summary.id))) == []
        return [message.text for message in self.sessions.get(summary.id).messages]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def stamped(lines: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for second, line in enumerate(lines):
        yield {"timestamp": f"2026-11-23T05:17:{second % 60:02}.000Z", **line}


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def item(kind: str, /, **fields: Any) -> dict[str, Any]:
    return event("item_completed", item={"type": kind, "id": "i1", **fields})


def response(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def called(name: str, call_id: str = "c1", /, **arguments: Any) -> dict[str, Any]:
    return response("function_call", name=name, call_id=call_id, arguments=json.dumps(arguments))


def result(output: Any, call_id: str = "c1") -> dict[str, Any]:
    return response("function_call_output", call_id=call_id, output=output)


def counted(total: int, last: int = 100) -> dict[str, Any]:
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return event("token_count", info=info)


PROMPT = event("user_message", message="do it", kind="plain")
ANSWER = (event("agent_message", message="Done."), response("message", role="assistant", content=[]))


# -- results of commands


@pytest.mark.parametrize(
    ("output", "text", "exit_code"),
    [
        ('{"output":"out\\n","metadata":{"exit_code":3,"duration_seconds":0.5}}', "out\n", 3),
        ("Exit code: 3\nWall time: 0.5 seconds\nOutput:\nout\n", "out\n", 3),
        ("Exit code: 3\nWall time: 0.5 seconds\nTotal output lines: 900\nOutput:\nout\n", "out\n", 3),
        ("Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 3\nOriginal token count: 1\nOutput:\nout\n",
         "out\n", 3),
        ([{"type": "input_text", "text": "Exit code: 3\nWall time: 1 seconds\nOutput:\nout"}], "out", 3),
        ({"content": "Exit code: 3\nWall time: 1 seconds\nOutput:\nout", "success": False}, "out", 3),
        ("exec command rejected by user", "exec command rejected by user", None),
    ],
)  # fmt: skip
def test_result_of_a_command_has_its_exit_code(home: Home, output: Any, text: str, exit_code: int | None) -> None:
    home.rollout(PROMPT, called("shell", command=["bash", "-lc", "x"]), result(output), *ANSWER)
    [tool] = home.tools()
    assert (tool.name, tool.input["command"], tool.error) == ("exec_command", "bash -lc x", text)
    [exited] = [one for one in home.sessions.events(THREAD) if one.type == "shell_exit"]
    assert exited.exit_code == (-1 if exit_code is None else exit_code)


PATCH = (
    "*** Begin Patch\n*** Add File: new.txt\n+one\n*** Delete File: old.txt\n"
    "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-x\n+y\n*** End Patch"
)


@pytest.mark.parametrize(
    "call",
    [
        called("shell", command=["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]),
        called("shell", command=["apply_patch", PATCH]),
        called("exec_command", cmd=f"apply_patch <<EOF\n{PATCH}\nEOF\n"),
        called("apply_patch", input=PATCH),
        response("custom_tool_call", name="apply_patch", call_id="c1", input=PATCH),
    ],
    ids=["heredoc", "program", "exec_command", "function", "custom"],
)
def test_patch_in_any_form_changes_files(home: Home, call: dict[str, Any]) -> None:
    home.rollout(PROMPT, call, result('{"output":"Success.","metadata":{"exit_code":0}}'), *ANSWER)
    [tool] = home.tools()
    assert (tool.name, tool.error) == ("apply_patch", None)
    files = [one for one in home.sessions.events(THREAD) if one.type.startswith("file_")]
    assert [(one.type, one.path) for one in files] == [
        ("file_create", "/w/new.txt"), ("file_delete", "/w/old.txt"), ("file_delete", "/w/a.txt"),
        ("file_patch", "/w/b.txt"),
    ]  # fmt: skip


def test_failed_patch_has_the_reason_and_no_files(home: Home) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+one\n*** End Patch"
    home.rollout(PROMPT, called("apply_patch", input=patch), result("Exit code: 1\nWall time: 0 seconds\nOutput:\nno"))
    [tool] = home.tools()
    assert tool.error == "no"
    assert [one for one in home.sessions.events(THREAD) if one.type.startswith("file_")] == []


def test_tool_without_an_item_of_its_own_has_input_and_output(home: Home) -> None:
    home.rollout(PROMPT, called("update_plan", plan=[]), result("Plan updated"), called("mcp__files__look", "c2", at=1),
                 result({"content": "seen", "success": True}, "c2"), *ANSWER)  # fmt: skip
    plan, look = home.tools()
    assert (plan.name, plan.input, plan.output) == ("update_plan", {"plan": []}, "Plan updated")
    assert (look.name, look.input, look.error) == ("files/look", {"at": 1}, None)


def test_call_without_a_result_is_shown(home: Home) -> None:
    home.rollout(PROMPT, called("shell", command=["sleep", "9"]), event("turn_aborted", reason="interrupted"))
    [tool] = home.tools()
    assert (tool.output, tool.error) == (None, None)


# -- nothing twice


def test_event_at_the_end_of_a_call_replaces_its_result(home: Home) -> None:
    ended = event(
        "exec_command_end", call_id="c1", command=["ls"], cwd="/w", stdout="out", stderr="", exit_code=0,
        duration={"secs": 1, "nanos": 0},
    )  # fmt: skip
    home.rollout(PROMPT, called("exec_command", cmd="ls"), ended, result("Output:\nout"), *ANSWER)
    [tool] = home.tools()
    assert (tool.output, tool.duration_ms) == ("out", 1000)


def test_mcp_event_without_a_call_is_a_tool_call(home: Home) -> None:
    invocation = {"server": "files", "tool": "look", "arguments": {"at": 1}}
    done = event("mcp_tool_call_end", call_id="c1", invocation=invocation, result={"Ok": {"content": []}})
    failed = event("mcp_tool_call_end", call_id="c2", invocation=invocation, result={"Err": "gone"})
    home.rollout(PROMPT, done, failed, *ANSWER)
    assert [(tool.name, tool.error) for tool in home.tools()] == [("files/look", None), ("files/look", "gone")]


def test_web_search_counts_once(home: Home) -> None:
    action = {"type": "search", "query": "rain"}
    home.rollout(PROMPT, event("web_search_end", call_id="ws1", query="rain", action=action),
                 response("web_search_call", action=action), *ANSWER)  # fmt: skip
    assert [tool.name for tool in home.tools()] == ["web_search"]


@pytest.mark.parametrize("first", ["event", "item"])
def test_turn_that_is_stored_in_both_ways_is_read_once(home: Home, first: str) -> None:
    prompts = [PROMPT, item("UserMessage", content=[{"type": "text", "text": "do it"}])]
    answers = [*ANSWER, item("AgentMessage", content=[{"type": "Text", "text": "Done."}])]
    ran = item("CommandExecution", command=["ls"], status="completed", aggregated_output="out", exit_code=0) | {}
    ran["payload"]["item"]["id"] = "c1"
    both = [called("exec_command", cmd="ls"), ran, result("Exit code: 0\nWall time: 0 seconds\nOutput:\nout")]
    home.rollout(*(prompts if first == "event" else prompts[::-1]), *both, *answers, event("task_complete"))
    assert home.texts() == ["do it", "", "Done."] or home.texts() == ["do it", "Done."]
    assert [tool.output for tool in home.tools()] == ["out"]


def test_thread_that_a_newer_release_resumed_has_all_turns(home: Home) -> None:
    home.rollout(
        PROMPT, {"type": "turn_context", "payload": {"model": "m"}}, counted(100), *ANSWER,
        event("task_started", turn_id="t2"), item("UserMessage", content=[{"type": "text", "text": "more"}]),
        item("AgentMessage", content=[{"type": "Text", "text": "More done."}]),
        {"type": "token_usage_record", "payload": {"response_id": "r", "usage": {"input_tokens": 50}}},
        counted(150, 50), event("task_complete"),
        event("task_started", turn_id="t3"), event("user_message", message="older again"), counted(150, 50),
        event("agent_message", message="Old."), counted(180, 30), event("task_complete"),
    )  # fmt: skip
    assert home.texts() == ["do it", "Done.", "more", "More done.", "older again", "Old."]
    [summary] = home.sessions.list()
    assert (summary.turn_count, summary.cost.input_tokens) == (3, 180)
    ends = [one.type for one in home.sessions.events(summary.id) if one.type in {"turn_start", "turn_end"}]
    assert ends == ["turn_start", "turn_end"] * 3


def test_same_prompt_again_is_another_turn(home: Home) -> None:
    home.rollout(PROMPT, *ANSWER, PROMPT, *ANSWER)
    assert home.texts() == ["do it", "Done."] * 2


@pytest.mark.parametrize(("count", "left"), [(0, 3), (1, 2), (2, 1), (9, 0)])
def test_turns_that_were_taken_back_only_cost(home: Home, count: int, left: int) -> None:
    turns = [(event("user_message", message=f"turn {n}"), counted(100 * n), *ANSWER) for n in (1, 2, 3)]
    rolled_back = event("thread_rolled_back", num_turns=count)
    home.rollout(*(line for turn in turns for line in turn), rolled_back, PROMPT, *ANSWER)
    kept = [text for n in range(1, left + 1) for text in (f"turn {n}", "Done.")]
    assert home.texts() == [*kept, "do it", "Done."]
    [summary] = home.sessions.list()
    assert (summary.turn_count, summary.cost.input_tokens) == (left + 1, 300)


def test_call_that_a_fork_copied_counts_once(home: Home) -> None:
    turn = [event("task_started", turn_id="t1"), PROMPT, counted(100), *ANSWER, event("task_complete")]
    fork = "01a206d6-0000-7a01-a5e9-fb73cacca8f5"
    home.rollout(*turn)
    home.rollout({"type": "session_meta", "payload": {"id": THREAD}}, *turn, event("task_started", turn_id="t2"),
                 PROMPT, counted(200), *ANSWER, event("task_complete"), thread=fork)  # fmt: skip
    [total] = home.sessions.total_cost().values()
    assert (total.calls, total.input_tokens) == (2, 200)


def test_turn_without_an_answer_failed(home: Home) -> None:
    home.rollout(event("task_started", turn_id="t1"), PROMPT, event("task_complete", last_agent_message=None))
    [summary] = home.sessions.list()
    assert "without an answer" in (home.sessions.get(summary.id).messages[-1].error or "")


def test_thread_of_a_subagent_is_not_listed(home: Home) -> None:
    path = home.rollout(PROMPT, *ANSWER)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "x", "depth": 1}}}
    meta = {"type": "session_meta", "payload": {"id": THREAD, "source": source}}
    path.write_text("\n".join([json.dumps(meta), *path.read_text().splitlines()[1:], ""]))
    assert (home.sessions.list(), home.skipped) == ([], [])


# -- places


def compressed(path: Path) -> Path:
    """Compress a rollout as Codex does, in two frames, and remove the plain file."""
    module = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    content = path.read_bytes()
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(module.compress(content[:50]) + module.compress(content[50:]))
    path.unlink()
    return packed


def test_compressed_rollout_is_read(home: Home) -> None:
    compressed(home.rollout(PROMPT, *ANSWER))
    assert home.texts() == ["do it", "Done."]
    [summary] = home.sessions.list()
    assert summary.path.endswith(".jsonl.zst")


def test_plain_file_replaces_the_compressed_one(home: Home) -> None:
    path = home.rollout(PROMPT, *ANSWER)
    content = path.read_bytes()
    compressed(path)
    path.write_bytes(content)
    [summary] = home.sessions.list()
    assert summary.path == str(path)


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:60] + b"\0" * 40, lambda _: b"x"]
)
def test_damaged_compressed_rollout_raises_nothing(home: Home, damage: Any) -> None:
    path = compressed(home.rollout(*([PROMPT, *ANSWER] * 50)))
    path.write_bytes(damage(path.read_bytes()))
    for summary in home.sessions.list():
        assert validate(list(home.sessions.events(summary.id))) == []
    assert not [one for one in home.skipped if "adapter failed" in one.reason]


def test_compressed_rollout_without_zstandard_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compressed(home.rollout(PROMPT, *ANSWER))
    monkeypatch.setattr(zstandard, "find_decompressor", lambda: None)
    listing = home.sessions.list()
    assert listing == []
    assert [(one.path, "agent-mux[zstd]" in one.reason) for one in listing.skipped] == [(str(path), True)]


def test_archived_thread_is_listed(home: Home) -> None:
    home.rollout(PROMPT, *ANSWER, place="archived_sessions")
    assert home.texts() == ["do it", "Done."]


def test_fork_of_a_compressed_archived_thread_begins_with_its_messages(home: Home) -> None:
    compressed(home.rollout(PROMPT, *ANSWER, place="archived_sessions"))
    fork = "01a206d6-0000-7a01-a5e9-fb73cacca8f5"
    path = home.rollout(item("UserMessage", content=[{"type": "text", "text": "more"}]), thread=fork)
    first, *lines = path.read_text().splitlines()
    meta = json.loads(first)
    meta["payload"] |= {"forked_from_id": THREAD, "forked_from_ordinal_exclusive": 99}
    path.write_text("\n".join([json.dumps(meta), *lines, ""]))
    assert [message.text for message in home.sessions.get(fork).messages] == ["do it", "Done.", "more"]


# -- what cannot be read


def test_thread_in_an_unknown_form_is_named(home: Home) -> None:
    path = home.rollout(event("utterance", text="hello"), response("message", role="assistant", content=[]))
    listing = home.sessions.list()
    assert listing == []
    assert [(one.agent, one.path) for one in listing.skipped] == [("codex", str(path))]
    assert listing.skipped[0].reason == "no message in it can be read, only unknown rows (response_item/message)"


def test_thread_of_the_first_cli_is_named(home: Home) -> None:
    path = home.path / ".codex" / "sessions" / "rollout-2025-05-01-x.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert "first Codex CLI" in home.sessions.list().skipped[0].reason


def test_unused_thread_is_not_reported(home: Home) -> None:
    home.rollout(response("message", role="user", content=[]), event("task_started", turn_id="t"))
    listing = home.sessions.list()
    assert (listing, listing.skipped) == ([], ())


@pytest.mark.parametrize("call_id", [["x"], {}, 5, None])
def test_denied_command_with_an_id_of_another_type_is_read(home: Home, call_id: Any) -> None:
    call = called("exec_command", call_id, cmd="ls")
    output = response("function_call_output", call_id=call_id, output="exec command rejected by user")
    home.rollout(PROMPT, item("UserMessage", content=[{"type": "text", "text": "do it"}]), call, output)
    assert [(tool.name, tool.error) for tool in home.tools()] == [("exec_command", "exec command rejected by user")]


def test_web_searches_without_an_id_are_different_calls(home: Home) -> None:
    searches = [response("web_search_call", action={"type": "search", "query": query}) for query in ("rain", "sun")]
    home.rollout(PROMPT, *searches, *ANSWER)
    assert [tool.input["query"] for tool in home.tools()] == ["rain", "sun"]
