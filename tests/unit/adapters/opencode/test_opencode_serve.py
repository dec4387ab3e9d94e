"""The events of `opencode serve` and their facts."""

from typing import Any

import pytest
from opencode_transcript import (
    ANSWERED,
    SESSION,
    OpencodeConversation,
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
from tests.unit.adapters.codec_conversation import PROJECT, facts_of

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source
from agent_mux.sdk.facts import ShellInvocation
from agent_mux_adapters.opencode.wire import delay_until

CHILD = "ses_child"
COMMAND = {"command": "make", "description": "Build"}


@pytest.fixture
def talk() -> OpencodeConversation:
    return OpencodeConversation(approval_mode="yolo").running()


def facts_after(talk: OpencodeConversation, *lines: Any) -> list[facts.Fact]:
    return facts_of(talk.receive(*lines))


# -- text


def test_complete_part_adds_what_deltas_missed(talk: OpencodeConversation) -> None:
    assert facts_after(
        talk,
        message("m1"),
        text_part("m1", "", complete=False),
        delta("m1", "Hel"),
        delta("m1", "lo"),
        text_part("m1", "Hello you"),
    ) == [facts.TextDelta("Hel"), facts.TextDelta("lo"), facts.TextDelta(" you"), facts.TextEnd()]


def test_reasoning_is_emitted_as_thinking(talk: OpencodeConversation) -> None:
    begun = [message("m1"), text_part("m1", "", complete=False, kind="reasoning")]
    assert facts_after(talk, *begun, delta("m1", "hm", "reasoning"), text_part("m1", "hm", kind="reasoning")) == [
        facts.ThinkingDelta("hm"), facts.ThinkingEnd(),
    ]  # fmt: skip


def test_text_ends_where_a_call_begins(talk: OpencodeConversation) -> None:
    emitted = facts_after(
        talk,
        message("m1"),
        text_part("m1", "", complete=False),
        delta("m1", "I run it."),
        tool("c1", "bash", "pending", input={}),
        text_part("m1", "I run it."),
    )
    assert emitted == [facts.TextDelta("I run it."), facts.TextEnd(), facts.ToolBegin("c1", "bash")]


def test_trimmed_text_is_not_reported_as_different(talk: OpencodeConversation) -> None:
    emitted = facts_after(
        talk, message("m1"), text_part("m1", "", complete=False), delta("m1", "x \n"), text_part("m1", "x")
    )
    assert emitted == [facts.TextDelta("x \n"), facts.TextEnd()]


def test_text_that_differs_from_its_deltas_is_noted(talk: OpencodeConversation) -> None:
    emitted = facts_after(
        talk, message("m1"), text_part("m1", "", complete=False), delta("m1", "x"), text_part("m1", "y")
    )
    assert [type(fact) for fact in emitted] == [facts.TextDelta, facts.Note, facts.TextEnd]


def test_prompts_and_synthetic_texts_are_ignored(talk: OpencodeConversation) -> None:
    assert (
        facts_after(talk, message("u1", "user"), text_part("u1", "go on"), text_part("m1", "Continue", synthetic=True))
        == []
    )


# -- tools


def test_command_from_start_to_exit(talk: OpencodeConversation) -> None:
    run = {"input": COMMAND, "time": {"start": 1000}}
    assert facts_after(
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
        facts.ToolReady("c1", "bash", COMMAND, ShellInvocation("make")),
        facts.ToolOutput("c1", "one\n"),
        facts.ToolOutput("c1", "two\n"),
        facts.ToolDone("c1", "one\ntwo\n", "one\ntwo\n", 250, stdout="one\ntwo\n", exit_code=3),
    ]  # fmt: skip


def done(talk: OpencodeConversation, name: str, given: dict[str, Any], **state: Any) -> facts.ToolDone:
    """Return the end of a call that was emitted whole."""
    return next(
        f
        for f in facts_after(talk, tool("c9", name, "completed", input=given, **state))
        if isinstance(f, facts.ToolDone)
    )


def test_failed_command_without_output_has_its_exit_code_as_error(talk: OpencodeConversation) -> None:
    ended = done(talk, "bash", COMMAND, output="(no output)", metadata={"output": "(no output)", "exit": 4})
    assert (ended.error, ended.stdout, ended.exit_code) == ("exit code 4", "", 4)


def test_stopped_command_is_an_error(talk: OpencodeConversation) -> None:
    remark = "some\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
    ended = done(talk, "bash", COMMAND, output=remark, metadata={"output": remark, "exit": None})
    assert (ended.error, ended.stdout, ended.exit_code) == (remark, "some\n", -1)


def test_truncated_output_is_not_emitted_twice(talk: OpencodeConversation) -> None:
    run = {"input": COMMAND}
    emitted = facts_after(
        talk,
        tool("c1", "bash", "running", **run, metadata={"output": "one\n"}),
        tool("c1", "bash", "running", **run, metadata={"output": "...\n\ntail"}),
        tool("c1", "bash", "completed", **run, output="...\n\ntail", metadata={"output": "...\n\ntail", "exit": 0}),
    )
    assert emitted[1:] == [
        facts.ToolOutput("c1", "one\n"),
        facts.ToolDone("c1", "...\n\ntail", stdout=None, exit_code=0),
    ]


def test_rejected_call_is_an_error(talk: OpencodeConversation) -> None:
    why = "The user rejected permission to use this specific tool call."
    emitted = facts_after(talk, tool("c1", "bash", "error", input=COMMAND, error=why))
    assert emitted[-1] == facts.ToolDone("c1", "", why, stdout="")


def test_unknown_tool_keeps_its_name_and_fails(talk: OpencodeConversation) -> None:
    given = {"tool": "fly", "error": "Model tried to call unavailable tool 'fly'."}
    emitted = facts_after(
        talk, tool("c1", "invalid", "completed", input=given, output="The arguments are invalid: fly")
    )
    assert emitted == [
        facts.ToolReady("c1", "fly", None),
        facts.ToolDone("c1", error="The arguments are invalid: fly"),
    ]


def test_file_tools_have_effects(talk: OpencodeConversation) -> None:
    path = f"{PROJECT}/a.txt"
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
            {"filePath": f"{PROJECT}/a.txt", "oldString": "x", "newString": "y"},
            {"diff": f"{EDIT}@@ -1 +1 @@\n-x\n+y\n"},
            (facts.FilePatched(f"{PROJECT}/a.txt", f"{EDITED}@@ -1 +1 @@\n-x\n+y\n"),),
        ),
        (
            "edit",  # OpenCode removed the common indentation
            {"filePath": f"{PROJECT}/a.txt", "oldString": "if x:\n        y\n", "newString": "if x:\n        z\n"},
            {"diff": f"{EDIT}@@ -1,2 +1,2 @@\n if x:\n-    y\n+    z\n"},
            (facts.FilePatched(f"{PROJECT}/a.txt", f"{EDITED}@@ -1,2 +1,2 @@\n     if x:\n-        y\n+        z\n"),),
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
    talk: OpencodeConversation,
    name: str,
    given: dict[str, Any],
    metadata: dict[str, Any],
    files: tuple[facts.FileEffect, ...],
) -> None:
    assert done(talk, name, given, output="ok", metadata=metadata).files == files


def test_skill_call_invokes_the_skill(talk: OpencodeConversation) -> None:
    emitted = facts_after(talk, tool("c1", "skill", "completed", input={"name": "pdf"}, output="..."))
    assert emitted[-1] == facts.SkillInvoked("pdf")


# -- MCP


def test_mcp_tools_are_recognized_by_known_servers() -> None:
    talk = OpencodeConversation()
    talk.connects()
    talk.receive_response(1, {"my_db": {"status": "connected"}, "my": {"status": "connected"}})
    talk.receive_response(2, {"id": SESSION})
    talk.receive(status("busy"))
    assert facts_after(talk, tool("c1", "my_db_query", "pending", input={})) == []
    assert facts_after(talk, tool("c1", "my_db_query", "running", input={"q": 1})) == [
        facts.McpBegin("c1", "my_db", "query", {"q": 1})
    ]
    assert facts_after(talk, tool("c1", "my_db_query", "error", input={"q": 1}, error="no")) == [
        facts.McpDone("c1", "", "no")
    ]
    assert facts_after(talk, tool("c2", "own_tool", "running", input={})) == [facts.ToolReady("c2", "own_tool", {})]


# -- sub-agents


def delegated(state: str, **fields: Any) -> dict[str, Any]:
    given = {"description": "look", "prompt": "Look around.", "subagent_type": "explore"}
    return tool("c1", "task", state, input=given, metadata={"sessionId": CHILD}, **fields)


def child(message_id: str, text: str) -> list[dict[str, Any]]:
    return [message(message_id, session=CHILD), text_part(message_id, text, session=CHILD)]


def test_sub_agent_facts_are_wrapped_and_cost_counts_for_the_run(talk: OpencodeConversation) -> None:
    created = event("session.created", {"info": {"id": CHILD, "parentID": SESSION, "title": "look"}})
    emitted = facts_after(
        talk,
        tool("c1", "task", "pending", input={}),
        created,
        delegated("running"),
        status("busy", CHILD),
        *child("i1", "It is empty."),
        step_finish("i1", session=CHILD),
        delegated("completed", output='<task id="x">\n<task_result>\nIt is empty.\n</task_result>\n</task>'),
    )
    assert emitted[0] == facts.SubagentBegin(CHILD, "explore", "Look around.")
    assert facts.InSubagent(CHILD, facts.TextDelta("It is empty.")) in emitted
    cost = next(fact.cost for fact in emitted if isinstance(fact, facts.RunCost))
    assert (cost.total_usd, cost.input_tokens) == (0.5, 100)
    assert emitted[-1] == facts.SubagentDone(CHILD, "It is empty.", cost=cost)
    assert not any(isinstance(fact, facts.Usage) for fact in emitted)


def test_sub_agent_without_call_begins_with_its_first_fact(talk: OpencodeConversation) -> None:
    talk.receive(event("session.created", {"info": {"id": CHILD, "parentID": SESSION, "title": "look (@x)"}}))
    emitted = facts_after(talk, *child("i1", "Hi"))
    assert emitted[:2] == [facts.SubagentBegin(CHILD, "look (@x)", ""), facts.InSubagent(CHILD, facts.TextDelta("Hi"))]


# -- usage, retries, errors


def test_tokens_and_dollars_of_a_model_call(talk: OpencodeConversation) -> None:
    usage, cost, done_ = facts_after(talk, message("m1"), step_finish("m1"))
    assert usage == facts.Usage(100, 15, thinking_tokens=5, cached_tokens=30, cache_creation_tokens=2)
    assert isinstance(cost, facts.RunCost)
    assert (cost.cost.total_usd, cost.cost.output_tokens, cost.cost.source) == (0.5, 15, "native")
    assert done_ == facts.StepDone()


def test_a_model_without_a_price_has_no_cost(talk: OpencodeConversation) -> None:
    _, cost, _ = facts_after(talk, message("m1"), step_finish("m1", cost=0))
    assert isinstance(cost, facts.RunCost)
    assert cost.cost.source == "unknown"


def test_each_turn_has_its_own_cost() -> None:
    talk = OpencodeConversation(interactive=True).running()
    talk.receive(*ANSWERED)
    talk.rests()
    talk.receive(status("busy"), *ANSWERED)
    talk.rests()
    costs = [step.cost.total_usd for step in talk.steps if isinstance(step, facts.TurnDone) and step.cost is not None]
    assert costs == [0.5, 0.5]


def test_retry_has_its_delay(talk: OpencodeConversation) -> None:
    retry = status("retry", attempt=2, message="Too Many Requests", next=1795294324991)
    retry["id"] = "evt_1ffe16592001YtmbHc6XIgkLZ7"  # at 1795294324114
    assert facts_after(talk, retry) == [facts.RateLimited(877), facts.Retrying(2, 5, "Too Many Requests", 877)]


@pytest.mark.parametrize("event_id", ["", "evt_zz", "x" * 40])
def test_unknown_delay_is_zero(event_id: str) -> None:
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
def test_failed_turn_has_its_reason(talk: OpencodeConversation, error: Any, code: str, message_: str | None) -> None:
    talk.receive(message("m1"), event("session.error", {"sessionID": SESSION, "error": error}))
    talk.rests()
    talk.receive(message("m1", error=error, completed=True))
    [failed] = facts_of(talk.rests())
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == code
    assert message_ in (None, failed.failure.message)


def test_error_with_recovery_is_a_trouble(talk: OpencodeConversation) -> None:
    talk.receive(message("m1"), failure("APIError", message="hiccup"))
    assert facts_after(talk, status("busy")) == [facts.RecoverableError("AGENT_CRASH", "hiccup")]
    talk.receive(*ANSWERED)
    assert isinstance(facts_of(talk.rests())[0], facts.TurnDone)


def test_truncated_answer_has_its_stop_reason(talk: OpencodeConversation) -> None:
    talk.receive(message("m1", finish="length", completed=True))
    assert facts_of(talk.rests()) == [facts.TurnDone(stop_reason="length")]


def test_structured_output_comes_with_the_turn(talk: OpencodeConversation) -> None:
    talk.receive(message("m1", finish="tool-calls", structured={"x": 5}, completed=True))
    assert facts_of(talk.rests()) == [facts.TurnDone(structured_output={"x": 5}, stop_reason="tool_use")]


def test_summary_is_emitted_with_the_compaction(talk: OpencodeConversation) -> None:
    summary = [message("s1", summary=True), text_part("s1", "", complete=False), delta("s1", "sh")]
    assert facts_after(talk, *summary, text_part("s1", "short")) == []
    assert facts_after(talk, event("session.compacted", {"sessionID": SESSION})) == [facts.ContextCompacted("short")]


def test_events_of_the_next_engine_are_ignored() -> None:
    line = event("session.next.text.delta", {"sessionID": SESSION, "delta": "x"})
    [emitted] = OpencodeConversation().receive(line)
    assert isinstance(emitted, facts.Ignored)


def test_server_stderr_is_logged() -> None:
    assert list(OpencodeConversation().codec.receive(b"Warning", Source.STDERR)) == [facts.LogLine("Warning", "stderr")]


def test_part_of_unknown_type_is_reported(talk: OpencodeConversation) -> None:
    [emitted] = talk.receive(part("m1", "hologram"))
    assert isinstance(emitted, facts.Unknown)
    assert emitted.kind == "message.part.updated:hologram"


def test_model_call_that_answers_with_nothing_is_a_step(talk: OpencodeConversation) -> None:
    lines = [status("busy"), message("m1"), part("m1", "step-start"), step_finish("m1", "tool-calls")]
    answered = [message("m2"), part("m2", "step-start"), text_part("m2", "done"), step_finish("m2")]
    begun = [fact for fact in facts_after(talk, *lines, *answered) if isinstance(fact, facts.StepBegin)]
    assert begun == [facts.StepBegin(), facts.StepBegin("generation"), facts.StepBegin()]
