"""Tool calls, their results, and what they did: commands, files, MCP servers, sub-agents, skills, images."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from claude_recordings import events_of, native, new_codec, only, recorded_facts
from tests.unit.adapters.codec_conversation import receive

from agent_mux.sdk import facts, unified_diff
from agent_mux_adapters.claude import tools

GIT = shutil.which("git")


def dones(name: str) -> list[facts.ToolDone]:
    return only(recorded_facts(name), facts.ToolDone)


def result(call_id: str, content: Any, extra: Any = None, **block: Any) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": content, **block}]
    return {"type": "user", "message": {"role": "user", "content": blocks}, "tool_use_result": extra}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return {"type": "assistant", "message": {"id": f"m-{call_id}", "content": [block]}}


# -- the life of a call


def test_a_call_streams_its_input_and_is_ready_once() -> None:
    kinds = [
        type(fact) for fact in only(recorded_facts("tool_bash"), facts.ToolBegin, facts.ToolInput, facts.ToolReady)
    ]
    assert kinds == [facts.ToolBegin, facts.ToolInput, facts.ToolInput, facts.ToolInput, facts.ToolReady]


def test_parallel_results_come_in_the_order_of_completion() -> None:
    begun = [fact.call_id for fact in only(recorded_facts("tool_parallel"), facts.ToolReady)]
    ended = [fact.call_id for fact in dones("tool_parallel")]
    assert sorted(begun) == sorted(ended)
    assert begun != ended


def test_a_tool_that_does_not_exist_fails_without_the_clis_tags() -> None:
    (done,) = dones("ask_user_question")
    assert done.error is not None
    assert done.error.startswith("Error: No such tool available")


def test_a_denied_tool_is_an_error_and_its_command_never_ran() -> None:
    (done,) = dones("perm_deny")
    assert (done.error, done.exit_code, done.stdout) == ("User said no", None, None)
    assert "shell_start" not in [event.type for event in events_of("perm_deny")]


def test_result_without_its_call_is_emitted() -> None:
    (done,) = receive(new_codec(), result("lost", "something"))
    assert done == facts.ToolDone("lost", output="something")


def test_a_structured_result_that_is_a_string_does_no_harm() -> None:
    (done,) = only(receive(new_codec(), call("1", "Bash", command="x"), result("1", "no", "Error: no", is_error=True)),
                   facts.ToolDone)  # fmt: skip
    assert done.error == "no"


# -- commands


def test_a_foreground_command_has_a_shell_and_a_background_one_has_none() -> None:
    (foreground,) = only(recorded_facts("tool_bash"), facts.ToolReady)
    (background,) = only(recorded_facts("tool_bash_background"), facts.ToolReady)
    assert foreground.shell == facts.ShellInvocation("echo hi")
    assert background.shell is None


def test_exit_codes_of_commands_are_true_whatever_the_cli_calls_them() -> None:
    three, no_match, four, good = dones("tool_bash_exit_codes")
    assert (three.exit_code, three.stdout, three.error) == (3, "out\nerr", "Exit code 3\nout\nerr")
    assert (no_match.exit_code, no_match.error) == (1, "No matches found")
    assert (four.exit_code, four.stdout) == (4, "")
    assert (good.exit_code, good.error, good.stdout) == (None, None, "o2\ne2")


def test_a_command_that_outlived_its_time_has_not_exited() -> None:
    (done,) = dones("tool_bash_timeout")
    assert (done.error, done.exit_code, done.stdout) == (None, -1, "before")


def test_a_remark_about_a_time_out_is_not_the_commands_output() -> None:
    failed = result("1", "Exit code 143\nCommand timed out after 1s", "Error: ...", is_error=True)
    (done,) = only(receive(new_codec(), call("1", "Bash", command="sleep 9"), failed), facts.ToolDone)
    assert (done.exit_code, done.stdout) == (143, "")


def test_an_interrupted_command_is_an_error() -> None:
    extra = {"stdout": "half", "stderr": "", "interrupted": True}
    (done,) = only(receive(new_codec(), call("1", "Bash", command="x"), result("1", "half", extra)), facts.ToolDone)
    assert (done.error, done.stdout) == ("half", "half")


def test_truncated_output_is_emitted_whole() -> None:
    (done,) = dones("unicode_big_output")
    assert len(done.stdout or "") > 20_000
    assert "persisted-output" not in done.output


def test_inside_a_sub_agent_a_command_is_read_from_its_text() -> None:
    inside = [fact.fact for fact in only(recorded_facts("subagent_sync"), facts.InSubagent)]
    (done,) = only(inside, facts.ToolDone)
    assert (done.stdout, done.error) == ("from-sub", None)


# -- files


def test_file_effects_match_the_result() -> None:
    effects = [effect for done in dones("tool_files") for effect in done.files]
    path = "/home/dev/project/a.txt"
    assert effects[:2] == [facts.FileWritten(path, 14, created=True), facts.FileRead(path)]
    assert isinstance(effects[2], facts.FilePatched)
    assert effects[2].path == path
    assert effects[2].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"


def test_writing_over_a_file_does_not_create_it() -> None:
    (written,) = [e for done in dones("tool_write_over") for e in done.files if isinstance(e, facts.FileWritten)]
    assert (written.created, written.byte_count) == (False, 19)


def test_bytes_are_counted_not_characters() -> None:
    steps = receive(new_codec(), call("1", "Write", file_path="/f", content="über"), result("1", "File created"))
    assert only(steps, facts.ToolDone)[0].files == (facts.FileWritten("/f", 5, created=True),)


def test_a_failed_edit_has_no_effect() -> None:
    assert [done.files for done in dones("tool_file_errors") if done.error] == [(), ()]


def test_a_notebook_edit_is_a_patch_of_the_file() -> None:
    patches = [effect for done in dones("tool_read_kinds") for effect in done.files
               if isinstance(effect, facts.FilePatched) and effect.path.endswith(".ipynb")]  # fmt: skip
    assert "print(2)" in patches[0].diff


def test_an_edit_inside_a_sub_agent_has_a_diff_of_its_fragments() -> None:
    steps = receive(
        new_codec(), call("1", "Edit", file_path="/f", old_string="a\nb", new_string="a\nc"), result("1", "ok")
    )
    (patched,) = only(steps, facts.ToolDone)[0].files
    assert patched.diff.splitlines()[3:] == [" a", "-b", unified_diff.NO_NEWLINE, "+c", unified_diff.NO_NEWLINE]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "new\n"),
        ("gone\n", ""),
        ("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nD\ne\nf\ng\n"),
        ("no end", "no end\n"),
        ("x\n", "x\ny"),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n5b\n6\n7\n8\n9\n"),
        ("sep\u2028arator\n", "sep\u2028aration\n"),
        ("cr\r\nlf\r\n", "cr\r\nLF\r\n"),
    ],
)
@pytest.mark.skipif(GIT is None, reason="git is the judge")
def test_diffs_can_be_applied(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "f"
    file.write_bytes(old.encode())
    diff = unified_diff.from_texts("f", old, new)
    assert GIT is not None
    subprocess.run([GIT, "apply", "--unidiff-zero", "-"], cwd=tmp_path, input=diff.encode(), check=True, timeout=30)
    assert (file.read_bytes() if file.exists() else b"").decode() == new


def test_a_patch_into_an_empty_file_begins_before_its_first_line() -> None:
    patch = [{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+brand new"]}]
    assert "@@ -0,0 +1,1 @@" in tools.patch_diff("f", patch)


# -- images, skills


def test_an_image_in_a_result_is_produced_and_not_repeated_in_the_output() -> None:
    (image,) = only(recorded_facts("tool_read_kinds"), facts.ImageProduced)
    assert (image.mime_type, (image.base64 or "")[:6]) == ("image/png", "iVBORw")
    assert "iVBORw" not in str(dones("tool_read_kinds")[0].output)


def test_a_skill_is_invoked_only_when_it_exists() -> None:
    assert [skill.name for skill in only(recorded_facts("tool_read_kinds"), facts.SkillInvoked)] == ["simplify"]


# -- MCP


def test_a_tool_of_an_mcp_server_is_never_a_tool_call() -> None:
    facts_told = recorded_facts("mcp_tool")
    assert not only(facts_told, facts.ToolBegin, facts.ToolInput, facts.ToolReady, facts.ToolDone)
    good, bad = only(facts_told, facts.McpDone)
    assert [(m.server, m.tool) for m in only(facts_told, facts.McpBegin)] == [("echo", "echo"), ("echo", "boom")]
    assert (good.output, good.error) == ("echo: ping", None)
    assert bad.error is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mcp__a__b__c", ("a", "b__c")), ("mcp__plugin_x_y__t", ("plugin_x_y", "t")), ("mcp__", None), ("Bash", None)],
)
def test_names_of_mcp_tools(name: str, expected: tuple[str, str] | None) -> None:
    steps = receive(new_codec(), call("1", name))
    begun = only(steps, facts.McpBegin)
    assert [(fact.server, fact.tool) for fact in begun] == ([expected] if expected else [])


# -- sub-agents


@pytest.mark.parametrize(
    "name", ["subagent", "subagent_async", "subagent_sync", "subagent_forward", "subagent_sync_forward",
             "2.1.197/subagent"]
)  # fmt: skip
def test_a_sub_agent_reports_its_own_words(name: str) -> None:
    facts_told = recorded_facts(name)
    (begun,) = only(facts_told, facts.SubagentBegin)
    (done,) = only(facts_told, facts.SubagentDone)
    assert (begun.name, begun.prompt) == ("general-purpose", "SUBTASK count the files")
    assert (done.subagent_id, done.summary, done.error) == (begun.subagent_id, "Subagent result: 3 files.", None)


def test_a_report_without_structure_loses_its_frame() -> None:
    launched = native("subagent_sync", type="user")[-1]
    launched["tool_use_result"] = None
    call_id = launched["message"]["content"][0]["tool_use_id"]
    steps = receive(new_codec(), call(call_id, "Task", prompt="p"), launched)
    assert only(steps, facts.SubagentDone)[0].summary == "Subagent result: 3 files."


def test_sub_agents_never_show_as_tools() -> None:
    assert not only(recorded_facts("subagent_sync"), facts.ToolBegin, facts.ToolReady, facts.ToolDone)


def test_what_happens_inside_is_marked_with_the_call_that_began_it() -> None:
    facts_told = recorded_facts("subagent_parallel")
    begun = {fact.subagent_id for fact in only(facts_told, facts.SubagentBegin)}
    assert {fact.subagent_id for fact in only(facts_told, facts.InSubagent)} == begun
    assert len(begun) == 2


def test_forwarded_text_of_a_synchronous_subagent_is_emitted() -> None:
    def texts(name: str) -> list[str]:
        inside = [fact.fact for fact in only(recorded_facts(name), facts.InSubagent)]
        return [fact.text for fact in only(inside, facts.WholeText, facts.WholeThinking)]

    assert texts("subagent_sync") == []
    assert texts("subagent_sync_forward") == ["sub think", "sub text", "Subagent result: 3 files."]


def test_a_failed_sub_agent_is_an_error() -> None:
    (done,) = only(recorded_facts("interrupt_subagent"), facts.SubagentDone)
    assert done.error


@pytest.mark.parametrize("status", ["failed", "stopped", 7])
def test_an_asynchronous_sub_agent_that_did_not_complete_is_an_error(status: object) -> None:
    codec = new_codec()
    notification = native("subagent_async", subtype="task_notification")[0] | {"status": status, "summary": ""}
    call_id = notification["tool_use_id"]
    started = native("subagent_async", subtype="task_started")[0]
    steps = receive(codec, call(call_id, "Agent", prompt="p"), started, notification)
    assert only(steps, facts.SubagentDone)[0].error
