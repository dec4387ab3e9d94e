"""What the events of `opencode serve` mean."""

from typing import Any

import pytest
from opencode_transcript import (
    ANSWERED,
    SESSION,
    Talk,
    delta,
    event,
    failure,
    message,
    part,
    status,
    step_finish,
    text_part,
    tool,
)
from tests.unit.adapters.talking import PLACE, facts_of

from agent_mux import facts
from agent_mux.adapter import Source
from agent_mux.facts import Shell
from agent_mux_adapters.opencode.wire import delay_until

CHILD = "ses_child"
COMMAND = {"command": "make", "description": "Build"}


@pytest.fixture
def talk() -> Talk:
    return Talk(approval_mode="yolo").running()


def said(talk: Talk, *lines: Any) -> list[facts.Fact]:
    return facts_of(talk.says(*lines))


# -- text


def test_fragments_are_told_once_and_the_whole_part_adds_what_they_missed(talk: Talk) -> None:
    assert said(
        talk,
        message("m1"),
        text_part("m1", "", complete=False),
        delta("m1", "Hel"),
        delta("m1", "lo"),
        text_part("m1", "Hello you"),
    ) == [facts.TextDelta("Hel"), facts.TextDelta("lo"), facts.TextDelta(" you"), facts.TextEnd()]


def test_thoughts_are_told_as_thoughts(talk: Talk) -> None:
    begun = [message("m1"), text_part("m1", "", complete=False, kind="reasoning")]
    assert said(talk, *begun, delta("m1", "hm", "reasoning"), text_part("m1", "hm", kind="reasoning")) == [
        facts.ThinkingDelta("hm"), facts.ThinkingEnd(),
    ]  # fmt: skip


def test_a_message_ends_where_a_call_begins_though_its_part_is_completed_later(talk: Talk) -> None:
    told = said(
        talk,
        message("m1"),
        text_part("m1", "", complete=False),
        delta("m1", "I run it."),
        tool("c1", "bash", "pending", input={}),
        text_part("m1", "I run it."),
    )
    assert told == [facts.TextDelta("I run it."), facts.TextEnd(), facts.ToolBegin("c1", "bash")]


def test_a_text_that_the_cli_trimmed_is_no_other_text(talk: Talk) -> None:
    told = said(talk, message("m1"), text_part("m1", "", complete=False), delta("m1", "x \n"), text_part("m1", "x"))
    assert told == [facts.TextDelta("x \n"), facts.TextEnd()]


def test_a_text_that_differs_from_its_fragments_is_noted(talk: Talk) -> None:
    told = said(talk, message("m1"), text_part("m1", "", complete=False), delta("m1", "x"), text_part("m1", "y"))
    assert [type(fact) for fact in told] == [facts.TextDelta, facts.Note, facts.TextEnd]


def test_prompts_and_what_opencode_adds_to_them_are_not_told(talk: Talk) -> None:
    assert (
        said(talk, message("u1", "user"), text_part("u1", "go on"), text_part("m1", "Continue", synthetic=True)) == []
    )


# -- tools


def test_a_command_from_its_announcement_to_its_exit(talk: Talk) -> None:
    run = {"input": COMMAND, "time": {"start": 1000}}
    assert said(
        talk,
        tool("c1", "bash", "pending", input={}),
        tool("c1", "bash", "running", **run),
        tool("c1", "bash", "running", **run, metadata={"output": ""}),
        tool("c1", "bash", "running", **run, metadata={"output": "one\n"}),
        tool("c1", "bash", "running", **run, metadata={"output": "one\ntwo\n"}),
        tool("c1", "bash", "completed", input=COMMAND, output="one\ntwo\n", time={"start": 1000, "end": 1250},
             metadata={"output": "one\ntwo\n", "exit": 3}),
    ) == [
        facts.ToolBegin("c1", "bash"),
        facts.ToolReady("c1", "bash", COMMAND, Shell("make")),
        facts.ToolOutput("c1", "one\n"),
        facts.ToolOutput("c1", "two\n"),
        facts.ToolDone("c1", "one\ntwo\n", "one\ntwo\n", 250, stdout="one\ntwo\n", exit_code=3),
    ]  # fmt: skip


def done(talk: Talk, name: str, given: dict[str, Any], **state: Any) -> facts.ToolDone:
    """How a call ended that was told whole."""
    return next(
        f for f in said(talk, tool("c9", name, "completed", input=given, **state)) if isinstance(f, facts.ToolDone)
    )


def test_a_failing_command_without_output_says_its_exit_code(talk: Talk) -> None:
    ended = done(talk, "bash", COMMAND, output="(no output)", metadata={"output": "(no output)", "exit": 4})
    assert (ended.error, ended.stdout, ended.exit_code) == ("exit code 4", "", 4)


def test_a_command_that_was_stopped_is_no_success(talk: Talk) -> None:
    remark = "some\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
    ended = done(talk, "bash", COMMAND, output=remark, metadata={"output": remark, "exit": None})
    assert (ended.error, ended.stdout, ended.exit_code) == (remark, "some\n", -1)


def test_of_a_long_output_only_the_end_is_shown_and_nothing_is_told_twice(talk: Talk) -> None:
    run = {"input": COMMAND}
    told = said(
        talk,
        tool("c1", "bash", "running", **run, metadata={"output": "one\n"}),
        tool("c1", "bash", "running", **run, metadata={"output": "...\n\ntail"}),
        tool("c1", "bash", "completed", **run, output="...\n\ntail", metadata={"output": "...\n\ntail", "exit": 0}),
    )
    assert told[1:] == [
        facts.ToolOutput("c1", "one\n"),
        facts.ToolDone("c1", "...\n\ntail", stdout=None, exit_code=0),
    ]


def test_a_call_that_was_refused_is_an_error(talk: Talk) -> None:
    why = "The user rejected permission to use this specific tool call."
    told = said(talk, tool("c1", "bash", "error", input=COMMAND, error=why))
    assert told[-1] == facts.ToolDone("c1", "", why, stdout="")


def test_an_unknown_tool_goes_by_its_own_name_and_fails(talk: Talk) -> None:
    given = {"tool": "fly", "error": "Model tried to call unavailable tool 'fly'."}
    told = said(talk, tool("c1", "invalid", "completed", input=given, output="The arguments are invalid: fly"))
    assert told == [
        facts.ToolReady("c1", "fly", None),
        facts.ToolDone("c1", error="The arguments are invalid: fly"),
    ]


def test_what_tools_did_to_files(talk: Talk) -> None:
    path = f"{PLACE}/a.txt"
    written = done(talk, "write", {"filePath": path, "content": "ä\n"}, metadata={"filepath": path, "exists": True})
    assert written.files == (facts.FileWritten(path, 3, created=False),)


EDIT = "Index: /home/dev/project/a.txt\n=====\n--- /home/dev/project/a.txt\n+++ /home/dev/project/a.txt\n"
EDITED = "--- a/a.txt\n+++ b/a.txt\n"


@pytest.mark.parametrize(
    ("name", "given", "metadata", "files"),
    [
        ("read", {"filePath": "/x"}, {}, (facts.FileRead("/x"),)),
        ("read", {"filePath": "/x"}, {"display": {"type": "directory"}}, ()),
        (
            "edit",
            {"filePath": "b", "oldString": "", "newString": "new"},
            {},
            (facts.FileWritten("b", 3, created=True),),
        ),
        (
            "edit",
            {"filePath": f"{PLACE}/a.txt", "oldString": "x", "newString": "y"},
            {"diff": f"{EDIT}@@ -1 +1 @@\n-x\n+y\n"},
            (facts.FilePatched(f"{PLACE}/a.txt", f"{EDITED}@@ -1 +1 @@\n-x\n+y\n"),),
        ),
        (
            "edit",  # the indentation that all lines have in common was taken off
            {"filePath": f"{PLACE}/a.txt", "oldString": "if x:\n        y\n", "newString": "if x:\n        z\n"},
            {"diff": f"{EDIT}@@ -1,2 +1,2 @@\n if x:\n-    y\n+    z\n"},
            (facts.FilePatched(f"{PLACE}/a.txt", f"{EDITED}@@ -1,2 +1,2 @@\n     if x:\n-        y\n+        z\n"),),
        ),
        (
            "apply_patch",
            {"patchText": "..."},
            {
                "files": [
                    {"type": "add", "filePath": "/n", "patch": "--- n\n+++ n\n@@ -0,0 +1,2 @@\n+a\n+bc\n"},
                    {"type": "delete", "filePath": "/d", "patch": ""},
                    {"type": "move", "filePath": "/o", "movePath": "/m", "patch": "@@ -1 +1 @@\n-a\n+b\n"},
                    {"type": "update", "filePath": "/u", "patch": "@@ -1 +1 @@\n-a\n+b\n"},
                    {"type": "update"},
                ]
            },
            (
                facts.FileWritten("/n", 5, created=True),
                facts.FileDeleted("/d"),
                facts.FileDeleted("/o"),
                facts.FilePatched("/m", "--- a/o\n+++ b/m\n@@ -1 +1 @@\n-a\n+b\n"),
                facts.FilePatched("/u", "--- a/u\n+++ b/u\n@@ -1 +1 @@\n-a\n+b\n"),
            ),
        ),
    ],
)
def test_effects_on_files(
    talk: Talk, name: str, given: dict[str, Any], metadata: dict[str, Any], files: tuple[facts.FileEffect, ...]
) -> None:
    assert done(talk, name, given, output="ok", metadata=metadata).files == files


def test_a_skill_is_a_call_and_is_invoked(talk: Talk) -> None:
    told = said(talk, tool("c1", "skill", "completed", input={"name": "pdf"}, output="..."))
    assert told[-1] == facts.SkillInvoked("pdf")


# -- MCP


def test_tools_of_mcp_servers_are_known_by_the_servers_that_there_are() -> None:
    talk = Talk()
    talk.connects()
    talk.answers(1, {"my_db": {"status": "connected"}, "my": {"status": "connected"}})
    talk.answers(2, {"id": SESSION})
    talk.says(status("busy"))
    assert said(talk, tool("c1", "my_db_query", "pending", input={})) == []
    assert said(talk, tool("c1", "my_db_query", "running", input={"q": 1})) == [
        facts.McpBegin("c1", "my_db", "query", {"q": 1})
    ]
    assert said(talk, tool("c1", "my_db_query", "error", input={"q": 1}, error="no")) == [facts.McpDone("c1", "", "no")]
    assert said(talk, tool("c2", "own_tool", "running", input={})) == [facts.ToolReady("c2", "own_tool", {})]


# -- sub-agents


def delegated(state: str, **fields: Any) -> dict[str, Any]:
    given = {"description": "look", "prompt": "Look around.", "subagent_type": "explore"}
    return tool("c1", "task", state, input=given, metadata={"sessionId": CHILD}, **fields)


def child(message_id: str, text: str) -> list[dict[str, Any]]:
    return [message(message_id, session=CHILD), text_part(message_id, text, session=CHILD)]


def test_a_sub_agent_is_told_apart_and_its_cost_is_the_runs(talk: Talk) -> None:
    created = event("session.created", {"info": {"id": CHILD, "parentID": SESSION, "title": "look"}})
    told = said(
        talk,
        tool("c1", "task", "pending", input={}),
        created,
        delegated("running"),
        status("busy", CHILD),
        *child("i1", "It is empty."),
        step_finish("i1", session=CHILD),
        delegated("completed", output='<task id="x">\n<task_result>\nIt is empty.\n</task_result>\n</task>'),
    )
    assert told[0] == facts.SubagentBegin(CHILD, "explore", "Look around.")
    assert facts.InSubagent(CHILD, facts.TextDelta("It is empty.")) in told
    cost = next(fact.cost for fact in told if isinstance(fact, facts.RunCost))
    assert (cost.total_usd, cost.input_tokens) == (0.5, 100)
    assert told[-1] == facts.SubagentDone(CHILD, "It is empty.", cost=cost)
    assert not any(isinstance(fact, facts.Usage) for fact in told)


def test_a_sub_agent_that_nobody_announced_is_introduced(talk: Talk) -> None:
    talk.says(event("session.created", {"info": {"id": CHILD, "parentID": SESSION, "title": "look (@x)"}}))
    told = said(talk, *child("i1", "Hi"))
    assert told[:2] == [facts.SubagentBegin(CHILD, "look (@x)", ""), facts.InSubagent(CHILD, facts.TextDelta("Hi"))]


# -- usage, retries, errors


def test_tokens_and_dollars_of_a_model_call(talk: Talk) -> None:
    usage, cost, done_ = said(talk, message("m1"), step_finish("m1"))
    assert usage == facts.Usage(100, 15, thinking_tokens=5, cached_tokens=30, cache_creation_tokens=2)
    assert isinstance(cost, facts.RunCost)
    assert (cost.cost.total_usd, cost.cost.output_tokens, cost.cost.source) == (0.5, 15, "native")
    assert done_ == facts.StepDone()


def test_a_model_without_a_price_has_no_cost(talk: Talk) -> None:
    _, cost, _ = said(talk, message("m1"), step_finish("m1", cost=0))
    assert isinstance(cost, facts.RunCost)
    assert cost.cost.source == "unknown"


def test_each_turn_has_its_own_cost() -> None:
    talk = Talk(interactive=True).running()
    talk.says(*ANSWERED)
    talk.rests()
    talk.says(status("busy"), *ANSWERED)
    talk.rests()
    costs = [step.cost.total_usd for step in talk.steps if isinstance(step, facts.TurnDone) and step.cost is not None]
    assert costs == [0.5, 0.5]


def test_a_retry_is_told_with_its_wait(talk: Talk) -> None:
    retry = status("retry", attempt=2, message="Too Many Requests", next=1795294324991)
    retry["id"] = "evt_1ffe16592001YtmbHc6XIgkLZ7"  # at 1795294324114
    assert said(talk, retry) == [facts.RateLimited(877), facts.Retrying(2, 5, "Too Many Requests", 877)]


@pytest.mark.parametrize("event_id", ["", "evt_zz", "x" * 40])
def test_a_wait_that_cannot_be_known_is_none(event_id: str) -> None:
    assert delay_until(1, event_id) == 0


@pytest.mark.parametrize(
    ("error", "code", "message_"),
    [
        ({"name": "APIError", "data": {"message": "no", "statusCode": 401}}, "AUTH_ERROR", "no"),
        ({"name": "ProviderAuthError", "data": {"message": "no", "providerID": "x"}}, "AUTH_ERROR", "no"),
        ({"name": "APIError", "data": {"message": "slow", "statusCode": 429}}, "RATE_LIMITED", "slow"),
        ({"name": "APIError", "data": {"message": "oops", "statusCode": 500}}, "AGENT_CRASH", "oops"),
        ({"name": "UnknownError", "data": {"message": "You exceeded your current quota"}}, "RATE_LIMITED", None),
        ({"name": "ContextOverflowError", "data": {"message": "full"}}, "CONTEXT_EXCEEDED", "full"),
        ({"name": "MessageOutputLengthError", "data": {}}, "AGENT_CRASH", None),
        ({"weird": 1}, "AGENT_CRASH", '{"weird":1}'),
    ],
)
def test_a_turn_that_failed_says_why(talk: Talk, error: Any, code: str, message_: str | None) -> None:
    talk.says(message("m1"), event("session.error", {"sessionID": SESSION, "error": error}))
    talk.rests()
    talk.says(message("m1", error=error, completed=True))
    [failed] = facts_of(talk.rests())
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == code
    assert message_ in (None, failed.failure.message)


def test_an_error_that_the_session_gets_over_is_a_trouble(talk: Talk) -> None:
    talk.says(message("m1"), failure("APIError", message="hiccup"))
    assert said(talk, status("busy")) == [facts.Trouble("AGENT_CRASH", "hiccup")]
    talk.says(*ANSWERED)
    assert isinstance(facts_of(talk.rests())[0], facts.TurnDone)


def test_an_answer_that_was_cut_off_is_noted(talk: Talk) -> None:
    talk.says(message("m1", finish="length", completed=True))
    assert [type(fact) for fact in facts_of(talk.rests())] == [facts.Note, facts.TurnDone]


def test_the_answer_to_a_schema_comes_with_the_turn(talk: Talk) -> None:
    talk.says(message("m1", finish="tool-calls", structured={"x": 5}, completed=True))
    assert facts_of(talk.rests()) == [facts.TurnDone(structured_output={"x": 5})]


def test_the_context_is_compacted_to_a_summary_that_is_no_answer(talk: Talk) -> None:
    summary = [message("s1", summary=True), text_part("s1", "", complete=False), delta("s1", "sh")]
    assert said(talk, *summary, text_part("s1", "short")) == []
    assert said(talk, event("session.compacted", {"sessionID": SESSION})) == [facts.ContextCompacted("short")]


def test_events_of_the_engine_to_come_are_known() -> None:
    line = event("session.next.text.delta", {"sessionID": SESSION, "delta": "x"})
    [told] = Talk().says(line)
    assert isinstance(told, facts.Ignored)


def test_what_the_server_prints_on_standard_error_is_a_log_line() -> None:
    assert list(Talk().codec.receive(b"Warning", Source.STDERR)) == [facts.LogLine("Warning", "stderr")]


def test_a_part_of_an_unknown_type_is_unknown(talk: Talk) -> None:
    [told] = talk.says(part("m1", "hologram"))
    assert isinstance(told, facts.Unknown)
    assert told.kind == "message.part.updated:hologram"
