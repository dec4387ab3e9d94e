"""Session events as facts, the same in both protocols: one test for each peculiarity."""

from typing import Any

import pytest
from copilot_transcript import calls, done_with, event, events_of, facts_from, failed_with
from tests.unit.adapters.codec_conversation import PROJECT

from agent_mux.events import AgentEvent, QuotaWindow
from agent_mux.sdk import facts

PROMPT = event("user.message", messageId="u", content="go")
STEP = event("assistant.turn_start", turnId="0")
IDLE = event("assistant.idle")
RUN = {"command": "make", "mode": "sync"}


def fragment_of(fragment: str, message: str = "m", agent: str | None = None) -> dict[str, Any]:
    return event("assistant.message_delta", agent, messageId=message, deltaContent=fragment)


def thought(fragment: str, name: str = "t") -> dict[str, Any]:
    return event("assistant.reasoning_delta", reasoningId=name, deltaContent=fragment)


def message(content: str, name: str = "m", agent: str | None = None, /, **data: Any) -> dict[str, Any]:
    return event("assistant.message", agent, messageId=name, content=content, **data)


def of(name: str, kind: str, **stream: Any) -> list[AgentEvent]:
    return [one for one in events_of(name, **stream) if one.type == kind]


# -- messages and thoughts


def test_a_streamed_message_is_emitted_once() -> None:
    emitted = facts_from(fragment_of("Hel"), fragment_of("lo"), message("Hello"))
    assert emitted == [facts.TextDelta("Hel"), facts.TextDelta("lo"), facts.TextEnd()]


def test_what_the_fragments_missed_is_added() -> None:
    assert facts_from(fragment_of("Hel"), message("Hello"))[1] == facts.TextDelta("lo")
    assert any(isinstance(fact, facts.Note) for fact in facts_from(fragment_of("Hel"), message("Bye")))


def test_a_whole_message_and_its_thought() -> None:
    assert facts_from(message("Hello", reasoningText="Hm.")) == [facts.WholeThinking("Hm."), facts.WholeText("Hello")]


def test_a_complete_thought_after_its_message_is_not_repeated() -> None:
    done = event("assistant.reasoning", reasoningId="t", content="Hm.")
    emitted = facts_from(thought("Hm."), fragment_of("Hi"), message("Hi", reasoningText="Hm."), done)
    assert emitted == [facts.ThinkingDelta("Hm."), facts.ThinkingEnd(), facts.TextDelta("Hi"), facts.TextEnd()]
    assert facts_from(message("Hi", reasoningText="Hm."), done) == [facts.WholeThinking("Hm."), facts.WholeText("Hi")]
    assert facts_from(done) == [facts.WholeThinking("Hm.")]


def test_a_retry_streams_the_message_again_with_another_id() -> None:
    emitted = facts_from(
        fragment_of("Hel"),
        event("model.call_failure", errorMessage='{"message":"too fast"}'),
        event("assistant.turn_retry", reason="rate_limit"),
        fragment_of("Hello", "m2"),
        message("Hello", "m2"),
    )
    assert emitted == [
        facts.TextDelta("Hel"), facts.RateLimited(), facts.Retrying(1, 0, "too fast"), facts.TextDelta("Hello"),
        facts.TextEnd(),
    ]  # fmt: skip


def test_a_fragment_of_another_shape_is_read_all_the_same() -> None:
    odd = event("assistant.message_delta", messageId=None, deltaContent="Hi")
    assert facts_from(odd) == [facts.TextDelta("Hi")]


# -- calls


def test_a_call_is_emitted_once_with_its_message() -> None:
    requests = [{"toolCallId": "c", "name": "bash", "arguments": RUN}, {"name": "nameless"}]
    emitted = facts_from(message("", toolRequests=requests), calls("c", "bash", **RUN))
    assert emitted == [facts.ToolReady("c", "bash", RUN, facts.ShellInvocation("make"))]


def test_the_input_of_built_in_tools_is_streamed() -> None:
    def fragment(name: str, delta: str) -> dict[str, Any]:
        return event("assistant.tool_call_delta", toolCallId="c", toolName=name, inputDelta=delta)

    assert facts_from(fragment("bash", "{"), fragment("bash", "}")) == [
        facts.ToolBegin("c", "bash"), facts.ToolInput("c", "{"), facts.ToolInput("c", "}")
    ]  # fmt: skip
    assert facts_from(fragment("echo-echo", "{")) == []  # the tool may belong to an MCP server


def test_a_failing_command_is_a_success_to_copilot() -> None:
    shown = "oops\n<shellId: 0 completed with exit code 3>"
    emitted = facts_from(calls("c", "bash", **RUN), done_with("c", shown, shellExecution={"exitCode": 3}))
    assert emitted[-1] == facts.ToolDone("c", error=shown, stdout="oops", exit_code=3, name="bash")
    [ended] = of("toolerr", "shell_exit")
    assert ended.exit_code == 3  # type: ignore[union-attr]
    assert len(of("toolerr", "tool_error")) == 3


def test_output_is_emitted_once_and_by_its_stream() -> None:
    def printed(text: str, stream: str) -> dict[str, Any]:
        return event("tool.shell_output", toolCallId="c", text=text, stream=stream)

    shown = "out\nerr\n<shellId: 0 completed with exit code 0>"
    emitted = facts_from(
        calls("c", "bash", **RUN), printed("out\n", "stdout"), printed("err\n", "stderr"), done_with("c", shown)
    )
    assert emitted[1:] == [
        facts.ToolOutput("c", "out\n"), facts.ToolOutput("c", "err\n", "stderr"),
        facts.ToolDone("c", shown, exit_code=0, name="bash"),
    ]  # fmt: skip
    [out] = of("hl_tools", "shell_stdout_delta")[:1]
    [err] = of("hl_tools", "shell_stderr_delta")
    assert (out.delta, err.delta) == ("out\n", "err\n")  # type: ignore[union-attr]


def test_partial_results_are_ignored() -> None:
    partial = event("tool.execution_partial_result", toolCallId="c", partialOutput="out\n")
    assert facts_from(calls("c", "bash", **RUN), partial) == facts_from(calls("c", "bash", **RUN))


def test_a_command_in_the_background_has_no_exit_of_its_call() -> None:
    started = "<command started in background with shellId: s>"
    emitted = facts_from(calls("c", "bash", command="serve", mode="async"), done_with("c", started))
    assert emitted == [
        facts.ToolReady("c", "bash", {"command": "serve", "mode": "async"}), facts.ToolDone("c", started, name="bash")
    ]  # fmt: skip


def test_a_command_that_is_moved_to_the_background() -> None:
    emitted = facts_from(calls("c", "bash", **RUN), done_with("c", "<still running>"))
    assert emitted[-1] == facts.ToolDone("c", "<still running>", exit_code=-1, name="bash")


def test_what_copilot_reads_by_itself_is_a_call() -> None:
    [ready] = [one for one in of("hl_background", "tool_call_ready") if one.tool_name == "read_bash"]  # type: ignore[union-attr]
    assert ready.input["shellId"] == "server"  # type: ignore[union-attr]


def test_a_refused_call_failed() -> None:
    emitted = facts_from(calls("c", "bash", **RUN), failed_with("c", "The user rejected this tool call."))
    assert emitted[-1] == facts.ToolDone("c", error="The user rejected this tool call.", name="bash")


def test_a_call_whose_beginning_is_missing() -> None:
    assert facts_from(done_with("c", "x", toolDescription={"name": "view"})) == [facts.ToolDone("c", "x", name="view")]
    assert facts_from(event("tool.execution_complete", toolCallId="c"))[0] == facts.ToolDone(
        "c", error="the tool failed without a message"
    )


def test_tools_of_mcp_servers() -> None:
    emitted = facts_from(
        event("tool.execution_start", toolCallId="c", toolName="s-t", mcpServerName="s", mcpToolName="t", arguments={}),
        done_with("c", "pong", result={"contents": [{"type": "image", "data": "AA==", "mimeType": "image/gif"}]}),
        event("tool.execution_start", toolCallId="d", toolName="s-t", mcpServerName="s", arguments=None),
        failed_with("d", "boom"),
    )
    assert emitted == [
        facts.McpBegin("c", "s", "t", {}), facts.McpDone("c", "pong"), facts.ImageProduced("image/gif", base64="AA=="),
        facts.McpBegin("d", "s", "s-t", None), facts.McpDone("d", None, "boom"),
    ]  # fmt: skip


# -- files


def diff(path: str, *lines: str, made: bool = False) -> str:
    old = "dev/null" if made else path.lstrip("/")
    head = f"\ndiff --git a{path} b{path}\nindex 0..0 100644\n--- a/{old}\n+++ b{path}\n"
    return head + "\n".join(lines) + "\n"


def effects(name: str, arguments: Any, shown: str = "", **data: Any) -> tuple[Any, ...]:
    begun = event("tool.execution_start", toolCallId="c", toolName=name, arguments=arguments)
    emitted = facts_from(begun, done_with("c", "ok", result={"detailedContent": shown}, **data))[-1]
    assert isinstance(emitted, facts.ToolDone)
    return emitted.files


def test_a_file_is_read_and_a_directory_is_not() -> None:
    assert effects("view", {"path": "/a"}) == (facts.FileRead("/a"),)
    telemetry = {"properties": {"viewType": "directory"}}
    assert effects("view", {"path": "/a"}, toolTelemetry=telemetry) == ()


def test_a_file_is_made() -> None:
    made = facts.FileWritten("/a", 7, created=True)
    assert effects("create", {"path": "/a", "file_text": "thrée\n"}) == (made,)
    assert effects("str_replace_editor", {"command": "create", "path": "/a", "file_text": "thrée\n"}) == (made,)


def test_the_empty_line_after_the_end_of_a_file_is_no_line() -> None:
    path = f"{PROJECT}/a.txt"
    shown = diff(path, "@@ -1,4 +1,4 @@", " one", "-two", "+2", " ")
    [patched] = effects("edit", {"path": path, "old_str": "two", "new_str": "2"}, shown)
    assert patched == facts.FilePatched(path, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n")


def test_the_diff_of_an_edit_falls_back_to_its_input() -> None:
    [patched] = effects("edit", {"path": "/a", "old_str": "two", "new_str": "2"})
    assert "-two" in patched.diff


def test_a_patch_of_many_files() -> None:
    kinds = {one.type for one in events_of("hl_patch")}
    assert {"file_create", "file_patch", "file_delete"} <= kinds
    edits = [{"path": "/gone", "kind": "delete"}, {"path": "/moved", "kind": "update"}, {"path": "/new", "kind": "add"}]
    shown = diff("/new", "@@ -1,0 +1,1 @@", "+x", made=True)
    assert effects("apply_patch", "...", shown, fileEdits=edits) == (
        facts.FileDeleted("/gone"), facts.FileWritten("/new", 1, created=True)
    )  # fmt: skip


# -- sub-agents


TASK = {"agent_type": "explore", "prompt": "look", "mode": "sync"}
STARTED = event("subagent.started", "inner", toolCallId="c", agentName="explore")


def test_messages_of_a_sub_agent_are_nested_in_it() -> None:
    emitted = facts_from(
        calls("c", "task", **TASK), STARTED, fragment_of("Hi", "m", "inner"), message("Hi", "m", "inner"),
        event("assistant.usage", "inner", inputTokens=10, outputTokens=1), event("user.message", "inner"),
        done_with("c", "There are 3."),
    )  # fmt: skip
    assert emitted[:-1] == [
        facts.SubagentBegin("c", "explore", "look"), facts.InSubagent("c", facts.TextDelta("Hi")),
        facts.InSubagent("c", facts.TextEnd()),
    ]  # fmt: skip
    done = emitted[-1]
    assert isinstance(done, facts.SubagentDone)
    assert (done.summary, done.error) == ("There are 3.", None)
    assert done.cost is not None
    assert done.cost.input_tokens == 10


def test_a_sub_agent_in_the_background_reports_when_it_completes() -> None:
    began = event("subagent.started", "inner", toolCallId="c", executionMode="background")
    emitted = facts_from(
        calls("c", "task", **TASK), began, done_with("c", "started"), message("Found it.", "m", "inner"),
        event("subagent.completed", "inner", toolCallId="c"),
        event("subagent.failed", "inner", toolCallId="c", error="too late"),
    )  # fmt: skip
    done = [fact for fact in emitted if isinstance(fact, facts.SubagentDone)]
    assert [one.summary for one in done] == ["Found it."]


def test_a_sub_agent_that_fails() -> None:
    why = event("subagent.failed", "inner", toolCallId="c", error="no model")
    assert facts_from(calls("c", "task", **TASK), why)[-1] == facts.SubagentDone("c", "", "no model")
    assert facts_from(calls("c", "task", **TASK), failed_with("c", "no"))[-1] == facts.SubagentDone("c", "", "no")


def test_a_sub_agent_without_a_call() -> None:
    assert facts_from(STARTED) == [facts.SubagentBegin("c", "explore", "")]


# -- turns, tokens, the context


def test_a_turn_and_its_tokens() -> None:
    used = event("assistant.usage", inputTokens=150, outputTokens=12, reasoningTokens=5, cacheReadTokens=30)
    emitted = facts_from(PROMPT, STEP, message("Hi"), used, event("assistant.turn_end"), IDLE)
    assert facts.Usage(120, 12, 5, 30, 0) in emitted
    *_, total, closing = emitted
    assert isinstance(total, facts.RunCost)
    assert isinstance(closing, facts.TurnDone)
    assert closing.cost == total.cost
    assert closing.cost is not None
    assert (closing.cost.source, closing.cost.input_tokens) == ("unknown", 120)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"errorType": "authentication", "message": "m"}, "AUTH_ERROR"),
        ({"errorType": "quota", "message": "m"}, "RATE_LIMITED"),
        ({"errorType": "query", "message": "m", "statusCode": 429}, "RATE_LIMITED"),
        ({"errorType": "query", "message": "400 maximum context length is 8192"}, "CONTEXT_EXCEEDED"),
        ({"errorType": "query", "message": "m", "statusCode": 500}, "AGENT_CRASH"),
        ({}, "AGENT_CRASH"),
    ],
)
def test_a_turn_fails_with_its_error(data: dict[str, Any], code: str) -> None:
    used = event("session.usage_info", currentTokens=10, tokenLimit=100)
    closing = facts_from(PROMPT, used, event("session.error", **data), IDLE)[-1]
    assert isinstance(closing, facts.TurnFailed)
    assert closing.failure.code == code
    assert closing.failure.max_tokens == (100 if code == "CONTEXT_EXCEEDED" else 0)


def test_an_aborted_turn_and_an_error_without_a_turn() -> None:
    assert facts_from(PROMPT, event("assistant.idle", aborted=True))[-1] == facts.TurnStopped()
    assert facts_from(IDLE) == []
    codec_steps = facts_from(event("session.error", message="no"))
    assert codec_steps == []


def test_a_steering_message_begins_no_turn_and_a_queued_prompt_does() -> None:
    assert facts_from(PROMPT, PROMPT) == [facts.TurnBegin()]
    queued = event("user.message", messageId="v", delivery="queued")
    assert facts_from(PROMPT, queued) == [facts.TurnBegin(), facts.TurnDone(), facts.TurnBegin()]


def test_images_of_a_prompt_are_taken() -> None:
    sent = event("user.message", messageId="u", attachments=[{"mimeType": "image/png"}, {"mimeType": "text/plain"}])
    assert facts_from(sent) == [facts.TurnBegin(), facts.ImageAccepted("image/png")]


def test_the_last_message_is_the_structured_answer() -> None:
    wanted = {"type": "object"}
    for content, value in (('{"a":1}', {"a": 1}), ("no", None)):
        closing = facts_from(PROMPT, message(content), IDLE, output_schema=wanted)[-1]
        assert closing == facts.TurnDone(None, value)


def test_the_context_fills_and_is_compacted() -> None:
    def filled(tokens: int) -> dict[str, Any]:
        return event("session.usage_info", currentTokens=tokens, tokenLimit=100)

    compacted = event("session.compaction_complete", success=True, summaryContent="A summary.", tokensRemoved=50)
    emitted = facts_from(PROMPT, filled(79), filled(80), filled(90), compacted, filled(85))
    assert emitted[1:] == [
        facts.ContextFilling(80, 100), facts.ContextCompacted("A summary.", 50), facts.ContextFilling(85, 100)
    ]  # fmt: skip


def test_a_compaction_between_two_turns_is_emitted_in_the_next() -> None:
    compacted = event("session.compaction_complete", success=True, summaryContent="A summary.", tokensRemoved=50)
    emitted = facts_from(PROMPT, IDLE, compacted, PROMPT)
    assert emitted[2:] == [facts.TurnBegin(), facts.ContextCompacted("A summary.", 50)]


def test_a_compaction_that_fails_and_a_truncation() -> None:
    emitted = facts_from(
        PROMPT, event("session.compaction_complete", success=False, error="no"),
        event("session.truncation", tokensRemovedDuringTruncation=0),
        event("session.truncation", tokensRemovedDuringTruncation=7),
    )  # fmt: skip
    assert emitted[1:] == [
        facts.RecoverableError("AGENT_CRASH", "the context could not be compacted: no"), facts.ContextCompacted("", 7)
    ]  # fmt: skip


# -- notices


def test_notices() -> None:
    servers = [{"name": "a", "status": "failed", "error": "gone"}, {"name": "b", "status": ["odd"]}]
    emitted = facts_from(
        event("session.start", sessionId="s", selectedModel="m"),
        event("session.skills_loaded", skills=[{"name": "x"}, {"name": "y", "enabled": False}]),
        event("skill.invoked", name="x"),
        event("session.mcp_servers_loaded", servers=servers),
        event("session.mcp_server_status_changed", serverName="b", status="connected"),
        event("session.mcp_server_status_changed", serverName="b", status="needs-auth", error="log in"),
        event("session.info", infoType="file_created", message="/a"),
        event("session.info", infoType="other", message="hear"),
        event("session.warning", message="careful"),
        event("hook.end", hookType="preToolUse", success=False, error={"message": "no"}),
        event("system.notification", kind={"type": "instruction_discovered", "sourcePath": "/AGENTS.md"}),
    )
    assert emitted == [
        facts.SessionKnown("s", model="m"), facts.SkillLoaded("x", "built-in"), facts.SkillInvoked("x"),
        facts.Note("the MCP server a is not available (failed): gone", "warn"),
        facts.Note("the MCP server b is not available (needs-auth): log in", "warn"), facts.Note("hear"),
        facts.Note("careful", "warn"), facts.Note("the hook preToolUse failed: no", "warn"),
        facts.AgentdocRead("/AGENTS.md"),
    ]  # fmt: skip


# -- the quota


def test_quota_snapshots_are_reported() -> None:
    snapshots = {
        "premium_interactions": {"remainingPercentage": 25.0, "resetDate": "2026-12-01T00:00:00Z"},
        "chat": {"isUnlimitedEntitlement": True, "remainingPercentage": 100},
    }
    window = QuotaWindow("premium_interactions", 0.75, 1_796_083_200_000)
    used = event("assistant.usage", inputTokens=5, outputTokens=1, quotaSnapshots=snapshots)
    assert facts_from(PROMPT, STEP, used)[-2:] == [facts.Usage(5, 1, 0, 0, 0), facts.QuotaReported((window,))]
    failed = event("model.call_failure", quotaSnapshots=snapshots)
    assert facts_from(PROMPT, STEP, failed)[-1] == facts.QuotaReported((window,))
