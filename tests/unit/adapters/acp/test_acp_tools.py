"""What the calls of tools mean, from ACP's own fields."""

import json
from typing import Any

import pytest
from acp_transcript import AcpConversation
from tests.unit.adapters.codec_conversation import PROJECT

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, DenyAction, WriteStdin
from agent_mux.sdk.facts import (
    FileDeleted,
    FilePatched,
    FileRead,
    FileWritten,
    ShellInvocation,
    TextDelta,
    ToolDone,
    ToolOutput,
    ToolReady,
)
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters.acp.quirks import QUIRKS

WHERE = f"{PROJECT}/a.txt"


def shown(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}} for text in texts]


def diff(old: str | None, new: str, **more: Any) -> dict[str, Any]:
    return {"type": "diff", "path": WHERE, "oldText": old, "newText": new, **more}


def called(*updates: dict[str, Any], quirks: AcpQuirks | None = None, **context: Any) -> list[Any]:
    """Return the facts of a call's updates; the first one announces it."""
    talk = AcpConversation(quirks, **context).prompted()
    for number, fields in enumerate(updates):
        talk.receive_update("tool_call_update" if number else "tool_call", toolCallId="t", **fields)
    return [fact for fact in talk.facts() if not isinstance(fact, facts.StepBegin)]


def test_a_command() -> None:
    emitted = called(
        {"title": "bash", "kind": "execute", "status": "pending", "rawInput": {"command": "ls", "cwd": "/x"}},
        {"status": "in_progress", "content": shown("a\n")},
        {"status": "in_progress", "content": shown("a\nb\n")},
        {"status": "completed", "content": shown("a\nb\nc\n"), "rawOutput": {"exitCode": 0}},
    )
    assert emitted == [
        ToolReady("t", "bash", {"command": "ls", "cwd": "/x"}, ShellInvocation("ls", "/x")),
        ToolOutput("t", "a\n"),
        ToolOutput("t", "b\n"),
        ToolDone("t", "a\nb\nc\n", stdout="a\nb\nc\n", exit_code=0, name="bash"),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        {"exitCode": 3, "output": "oops"},
        {"exit_code": 3, "aggregatedOutput": "oops"},
        {"output": "oops", "metadata": {"exit": 3}},
        {"details": {"exitCode": 3}, "output": "oops"},
    ],
)
def test_a_command_that_exits_with_an_error_has_failed_whatever_the_agent_calls_it(raw: Any) -> None:
    emitted = called({"kind": "execute", "rawInput": {"command": "x"}}, {"status": "completed", "rawOutput": raw})
    assert emitted[-1] == ToolDone("t", error="oops", stdout="oops", exit_code=3, name="execute")


def test_failed_command_without_output_reports_its_exit_code() -> None:
    emitted = called({"kind": "execute", "rawInput": {"command": "x"}},
                  {"status": "failed", "rawOutput": {"exitCode": 1}})  # fmt: skip
    assert emitted[-1] == ToolDone("t", error="exit code 1", exit_code=1, name="execute")


def test_stdout_and_stderr_are_separate_where_reported() -> None:
    raw = {"stdout": "out", "stderr": "err", "exitCode": 0}
    emitted = called({"kind": "execute", "rawInput": {"command": "x"}}, {"status": "completed", "rawOutput": raw})
    assert (emitted[-1].stdout, emitted[-1].stderr) == ("out", "err")


def test_announcement_content_is_not_output() -> None:
    start = {"title": "$ ls", "kind": "execute", "status": "pending", "content": shown("$ ls")}
    emitted = called(start, {"status": "in_progress", "content": shown("$ ls", "a\n")},
                  {"status": "completed", "content": shown("$ ls", "a\n")})  # fmt: skip
    assert emitted == [
        ToolReady("t", "execute", {"command": "$ ls"}, ShellInvocation("ls")),
        ToolOutput("t", "a\n"),
        ToolDone("t", "a\n", stdout="a\n", name="execute"),
    ]


@pytest.mark.parametrize("command", [{"command": ["echo", "a b"]}, {"cmd": "echo 'a b'"}])
def test_command_is_read_from_lists_and_alternative_fields(command: Any) -> None:
    [ready] = called({"kind": "execute", "rawInput": command})
    assert ready.shell == ShellInvocation("echo 'a b'")


@pytest.mark.parametrize(("kind", "first"), [("execute", {"cwd": "/x"}), ("edit", {}), ("other", {})])
def test_a_call_is_shown_when_its_input_is_complete(kind: str, first: Any) -> None:
    announced = {"title": "tool", "kind": kind, "status": "pending", "rawInput": first}
    assert called(announced) == []
    [ready] = called(announced, {"status": "in_progress", "rawInput": {"command": "ls"}})
    assert (ready.name, ready.input) == ("tool", {"command": "ls"})
    ready, done = called(announced, {"status": "failed", "content": shown("no such tool")})
    assert (ready.input, done.error) == (first, "no such tool")


def test_a_new_file() -> None:
    for old in (None, ""):
        emitted = called({"kind": "edit", "title": "write", "rawInput": {"path": "a.txt"}},
                      {"status": "completed", "content": [diff(old, "é\n"), *shown("Done.")]})  # fmt: skip
        assert emitted[-1] == ToolDone("t", "Done.", files=(FileWritten(WHERE, 3, True),), name="write")


def test_rewritten_file() -> None:
    emitted = called({"kind": "edit", "rawInput": {"content": "two\n"}},
                  {"status": "completed", "content": [diff("one\n", "two\n")]})  # fmt: skip
    assert emitted[-1].files == (FileWritten(WHERE, 4, False),)


def test_reported_file_existence_takes_precedence() -> None:
    end = {"status": "completed", "content": [diff(None, "x")], "rawOutput": {"fileExisted": True}}
    emitted = called({"kind": "edit", "rawInput": {"content": "x"}}, end)
    assert emitted[-1].files == (FileWritten(WHERE, 1, False),)


PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


@pytest.mark.parametrize(
    "end",
    [
        {"content": [diff("one\ntwo\n", "one\n2\n")]},
        {"content": [diff("two", "2")], "rawOutput": {"previousContent": "one\ntwo\n"}},
        {"content": [diff("two", "2")], "rawOutput": {"metadata": {"diff": f"Index: a\n===\n{PATCH}"}}},
    ],
)
def test_a_change_is_a_unified_diff_with_its_place_in_the_file(end: Any) -> None:
    emitted = called({"kind": "edit", "title": "edit"}, {"status": "completed", **end})
    assert emitted[-1].files == (FilePatched(WHERE, PATCH),)


def test_the_whole_files_of_the_permission_are_better_than_the_fragment_of_the_end() -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("tool_call", toolCallId="t", kind="edit", title="edit", rawInput={"a": 1})
    talk.asks_permission(0, "t", kind="edit", content=[diff("one\ntwo\n", "one\n2\n")])
    talk.receive_update("tool_call_update", toolCallId="t", status="completed", content=[diff("two", "2")])
    [done] = talk.facts(ToolDone)
    assert done.files == (FilePatched(WHERE, PATCH),)


def test_an_end_without_changes_does_not_take_them_back() -> None:
    emitted = called({"kind": "edit", "content": [diff("", "x\n")]}, {"status": "completed", "content": shown("ok")})
    assert emitted[-1].files == (FileWritten(WHERE, 2, True),)
    failed = called({"kind": "edit", "content": [diff("", "x\n")]}, {"status": "failed", "content": shown("no")})
    assert (failed[-1].files, failed[-1].error) == ((), "no")


def test_a_write_without_a_diff_is_known_by_its_input() -> None:
    emitted = called({"kind": "edit", "locations": [{"path": WHERE}], "rawInput": {"path": "a.txt", "content": "x"}},
                  {"status": "completed"})  # fmt: skip
    assert emitted[-1].files == (FileWritten(WHERE, 1, False),)


@pytest.mark.parametrize(("kind", "effect"), [("read", (FileRead(WHERE),)), ("delete", (FileDeleted(WHERE),)),
                                              ("search", ())])  # fmt: skip
def test_other_files_are_known_by_kind_and_place(kind: str, effect: Any) -> None:
    emitted = called({"kind": kind, "title": "a.txt", "locations": [{"path": WHERE, "line": None}]},
                  {"status": "completed"})  # fmt: skip
    assert emitted[0].name == kind  # the title is the file
    assert emitted[-1].files == effect


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__files__read_all", ("files", "read_all")),
        ("files_read_all", ("files", "read_all")),
        ("files-2__x", ("files-2", "x")),
        ("mcp_files_x", ("files", "x")),
    ],
)
def test_the_tools_of_mcp_servers(name: str, expected: Any) -> None:
    servers = (McpServer("files", command="/f"), McpServer("files-2", command="/f"))
    begun, done = called({"title": name, "kind": "other", "rawInput": {"a": 1}},
                         {"status": "completed", "content": shown("ok")}, mcp_servers=servers)  # fmt: skip
    assert begun == facts.McpBegin("t", *expected, {"a": 1})
    assert done == facts.McpDone("t", "ok")
    *_, failed = called({"title": name, "rawInput": {"a": 1}}, {"status": "failed"}, mcp_servers=servers)
    assert failed == facts.McpDone("t", error="the call failed")


def test_a_delegation() -> None:
    task = {"title": "task", "rawInput": {"subagent_type": "reviewer", "prompt": "look", "description": "x"}}
    assert called(task, {"status": "completed", "content": shown("fine")}) == [
        facts.SubagentBegin("t", "reviewer", "look"), facts.SubagentDone("t", "fine"),
    ]  # fmt: skip
    assert called(task, {"status": "failed", "content": shown("no")})[-1] == facts.SubagentDone("t", error="no")


def test_an_update_without_an_announcement_makes_the_call() -> None:
    talk = AcpConversation().prompted()
    talk.receive_update("tool_call_update", toolCallId="t", title="grep", kind="search", status="completed")
    assert [type(fact) for fact in talk.facts()] == [facts.StepBegin, ToolReady, ToolDone]


def test_updates_after_the_end_of_a_call_emit_nothing() -> None:
    emitted = called({"title": "x", "status": "completed"}, {"status": "failed"}, {"title": "y"})
    assert [type(fact) for fact in emitted] == [ToolReady, ToolDone]


class Silent(ToolReader):
    def ends_silently(self, call: AcpCall) -> bool:
        return call.kind == "edit"

    def continues_step(self, call: AcpCall) -> bool:
        return call.id.endswith("_1")


def test_silent_call_ends_when_the_agent_continues() -> None:
    talk = AcpConversation(AcpQuirks(tools=Silent())).prompted()
    talk.receive_update("tool_call", toolCallId="a", title="write", kind="edit", content=[diff(None, "x")])
    talk.receive_update("tool_call", toolCallId="b", title="write", kind="edit", content=[diff(None, "y")])
    assert [done.call_id for done in talk.facts(ToolDone)] == ["a"]
    talk.receive_response(3, {"stopReason": "end_turn"})
    assert [(done.call_id, done.files) for done in talk.facts(ToolDone)][1:] == [("b", (FileWritten(WHERE, 1, True),))]


def test_a_step_begins_when_the_calls_of_the_last_one_are_over() -> None:
    talk = AcpConversation(AcpQuirks(tools=Silent())).prompted()
    talk.thinks("hm")
    talk.speaks("I will.")
    talk.receive_update("tool_call", toolCallId="a_0", title="x")
    talk.receive_update("tool_call", toolCallId="b_0", title="x")
    talk.receive_update("tool_call_update", toolCallId="a_0", status="completed")
    assert len(talk.facts(facts.StepBegin)) == 1
    talk.receive_update("tool_call_update", toolCallId="b_0", status="completed")
    talk.receive_update("tool_call", toolCallId="c_1", title="x", status="completed")
    assert len(talk.facts(facts.StepBegin)) == 1
    talk.receive_update("tool_call", toolCallId="d_0", title="x", status="completed")
    assert len(talk.facts(facts.StepBegin)) == 2
    talk.speaks("Done.")
    assert len(talk.facts(facts.StepBegin)) == 3
    assert [type(fact) for fact in talk.facts()][:4] == [
        facts.StepBegin, facts.ThinkingDelta, facts.TextDelta, facts.TextEnd,
    ]  # fmt: skip


def test_plan_is_a_call_unless_its_tool_repeats_it() -> None:
    entries = [{"content": "a", "priority": "high", "status": "pending"}]
    talk = AcpConversation().prompted()
    talk.receive_update("plan", entries=entries)
    talk.receive_update("plan", entries=[])
    ready, done, *_ = talk.facts(ToolReady, ToolDone)
    assert (ready.name, ready.input, done.call_id) == ("plan", {"entries": entries}, ready.call_id)
    assert len({fact.call_id for fact in talk.facts(ToolReady)}) == 2
    quiet = AcpConversation(AcpQuirks(plan_repeats_tool_call=True)).prompted()
    quiet.receive_update("plan", entries=entries)
    assert quiet.facts() == []


def test_acp_adapter_reads_habits_of_common_agents() -> None:
    servers = (McpServer("files", command="/f"),)
    titled = {"title": "read_all (files MCP Server)", "kind": "other", "rawInput": {"a": 1}}
    assert called(titled, quirks=QUIRKS, mcp_servers=servers) == [facts.McpBegin("t", "files", "read_all", {"a": 1})]
    assert isinstance(called(titled, quirks=QUIRKS)[0], ToolReady)  # there is no such server

    talk = AcpConversation(QUIRKS).prompted()
    questions = [{"question": "Red or blue?", "header": "Color", "options": [{"label": "Red"}]}, {"question": "Why?"}]
    talk.receive_update("tool_call", toolCallId="t", title="Ask", kind="think", status="pending", rawInput={})
    talk.asks_permission(0, "t", title="Ask user", kind="think", _meta={"qwenQuestions": questions})
    assert talk.facts(facts.InputRequested) == [
        facts.InputRequested("0/0", "Red or blue?", "Color", ("Red",)), facts.InputRequested("0/1", "Why?"),
    ]  # fmt: skip
    talk.request(AnswerAction("0/0", "Red"))
    [*_, write] = talk.request(AnswerAction("0/1", "because"))
    assert isinstance(write, WriteStdin)
    outcome = {"outcome": "selected", "optionId": "once"}
    assert json.loads(write.data)["result"] == {"outcome": outcome, "answers": {"0": "Red", "1": "because"}}


def test_subagent_facts_are_attributed() -> None:
    inside = {"_meta": {"parentToolCallId": "t"}}
    talk = AcpConversation().prompted()
    task = {"subagent_type": "reviewer", "prompt": "look"}
    talk.receive_update("tool_call", toolCallId="t", title="task", rawInput=task, status="in_progress")
    talk.speaks("I look.", **inside)
    talk.receive_update("tool_call", toolCallId="u", title="bash", kind="execute", rawInput={"command": "ls"}, **inside)
    talk.asks_permission(0, "u", kind="execute", **inside)
    talk.request(DenyAction("0", "no"))
    tokens = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    talk.receive_update("agent_message_chunk", content={"type": "text", "text": "Fine."},
                 _meta={"parentToolCallId": "t", "usage": tokens})  # fmt: skip
    talk.receive_update("tool_call_update", toolCallId="t", status="completed", content=shown("all fine"))
    assert talk.facts() == [
        facts.StepBegin(),
        facts.SubagentBegin("t", "reviewer", "look"),
        facts.InSubagent("t", TextDelta("I look.")),
        facts.InSubagent("t", facts.TextEnd()),
        facts.InSubagent("t", ToolReady("u", "bash", {"command": "ls"}, ShellInvocation("ls"))),
        facts.ApprovalRequested("0", "Run a command", "ls", "low", "bash", command="ls", tool_input={"command": "ls"}),
        facts.RequestResolved("0", granted=False, reason="no"),
        facts.InSubagent("t", ToolDone("u", error="no", name="bash")),
        facts.InSubagent("t", TextDelta("Fine.")),
        facts.InSubagent("t", facts.Usage(1, 1)),
        facts.SubagentDone("t", "all fine"),
    ]
    emitted = talk.speaks("nobody's", _meta={"parentToolCallId": "gone"})
    assert emitted[-1] == TextDelta("nobody's")
