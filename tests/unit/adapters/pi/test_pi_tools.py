"""pi's tools: commands, file effects and diffs, from their results."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import PROJECT, codec_of, facts_of, receive
from tests.unit.adapters.pi_family import result, tool_end, tool_start, tool_update

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.pi.tool_results import from_numbered
from agent_mux_adapters.pi import ADAPTER


def of_call(name: str, arguments: dict[str, Any], *came: dict[str, Any], is_error: bool = False) -> list[Any]:
    """Return the facts of a call from its start to its end; the last result is the final one."""
    lines = [tool_start("c", name, **arguments), *(tool_update("c", name, part) for part in came[:-1])]
    steps = receive(codec_of(ADAPTER, "json"), *lines, tool_end("c", name, came[-1], is_error=is_error))
    return facts_of(steps, facts.ToolOutput, facts.ToolDone, facts.Note)


def files(name: str, arguments: dict[str, Any], came: dict[str, Any]) -> tuple[Any, ...]:
    [done] = of_call(name, arguments, came)
    effects: tuple[Any, ...] = done.files
    return effects


def bash(*came: dict[str, Any], is_error: bool = False) -> list[Any]:
    return of_call("bash", {"command": "x"}, *came, is_error=is_error)


# -- commands


def test_command_output_streams() -> None:
    assert bash(result("a\n"), result("a\nb\n"), result("a\nb\nc\n")) == [
        *(facts.ToolOutput("c", "a\n"), facts.ToolOutput("c", "b\n"), facts.ToolOutput("c", "c\n")),
        facts.ToolDone("c", output="a\nb\nc\n", name="bash"),
    ]


def test_command_without_output_has_empty_stdout() -> None:
    assert bash(result(""), result("(no output)")) == [facts.ToolDone("c", output="(no output)", name="bash")]


@pytest.mark.parametrize(
    ("shown", "printed", "code"),
    [
        ("oops\n\nCommand exited with code 3", "oops", 3),
        ("Command exited with code 1", "", 1),
        ("a\n\nCommand timed out after 2 seconds", "a", None),
        ("a\n\nCommand aborted", "a", None),
    ],
)
def test_status_below_the_output_is_split_off(shown: str, printed: str, code: int | None) -> None:
    *output, done = bash(result(shown), is_error=True)
    assert [fact.text for fact in output] == [printed] * bool(printed)
    assert (done.error, done.exit_code) == (shown, code)


def test_blocked_command_has_no_exit_code() -> None:
    [done] = bash(result("denied by the user"), is_error=True)
    assert (done.error, done.exit_code) == ("denied by the user", None)


def window(content: str, total: int) -> dict[str, Any]:
    return result("...", truncation={"truncated": True, "content": content, "totalBytes": total})


def test_new_output_is_found_in_the_shown_end() -> None:
    emitted = bash(result("0123456789"), window("3456789abc", 13), window("6789abcdef", 16))
    texts = [fact.text for fact in emitted if isinstance(fact, facts.ToolOutput)]
    assert texts == ["0123456789", "abc", "def"]


@pytest.mark.parametrize(
    ("later", "shown"),
    [
        (window("6789\n", 11), "\n[... 4 bytes not shown by the agent ...]\n6789\n"),
        (result("6789\n"), "\n[... output not shown by the agent ...]\n6789\n"),
    ],
)
def test_gap_in_long_output_is_marked_and_noted(later: Any, shown: str) -> None:
    emitted = bash(result("01"), later)
    assert [fact.text for fact in emitted if isinstance(fact, facts.ToolOutput)] == ["01", shown]
    assert facts.Note("the agent does not show all of this command's output") in emitted


# -- files


@pytest.mark.parametrize(("existed", "created"), [(False, True), (True, False)])
def test_extension_reports_whether_a_file_is_new(existed: bool, created: bool) -> None:
    arguments = {"path": f"{PROJECT}/a.txt", "content": "größe"}
    written = facts.FileWritten(f"{PROJECT}/a.txt", 7, created)
    assert files("write", arguments, result("ok", existedBefore=existed)) == (written,)


def test_without_the_extension_a_file_is_not_reported_as_new() -> None:
    assert files("write", {"path": "a", "content": "b"}, result("ok")) == (facts.FileWritten("a", 1, False),)


def test_patch_of_an_edit_is_its_diff() -> None:
    patch = "--- src/a.py\n+++ src/a.py\n@@ -1,1 +1,1 @@\n-a\n+b\n"
    arguments = {"path": "src/a.py", "edits": [{"oldText": "a", "newText": "b"}]}
    [patched] = files("edit", arguments, result("ok", patch=patch, diff="-1 x"))
    assert patched == facts.FilePatched("src/a.py", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,1 +1,1 @@\n-a\n+b\n")


def test_until_0_73_the_numbered_diff_is_converted() -> None:
    arguments = {"path": "a.py", "edits": [{"oldText": "b", "newText": "B"}]}
    [patched] = files("edit", arguments, result("ok", diff=" 1 a\n-2 b\n+2 B\n 3 c"))
    assert patched.diff == "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


def test_without_a_diff_replacements_make_one() -> None:
    arguments = {"path": "a.py", "edits": [{"oldText": "b\n", "newText": "B\n"}]}
    [patched] = files("edit", arguments, result("ok"))
    assert patched.diff.endswith("-b\n+B\n")


def test_diff_paths_are_relative_to_cwd() -> None:
    patch = f"--- {PROJECT}/a.py\n+++ {PROJECT}/a.py\n@@ -1,1 +1,1 @@\n-a\n+b\n"
    [patched] = files("edit", {"path": f"{PROJECT}/a.py"}, result("ok", patch=patch))
    assert patched.diff.startswith("--- a/a.py\n+++ b/a.py\n")


def test_failed_call_has_no_file_effects() -> None:
    [done] = of_call("write", {"path": "a", "content": "b"}, result("EACCES"), is_error=True)
    assert (done.files, done.error) == ((), "EACCES")


def test_failure_without_message_gets_one() -> None:
    [done] = of_call("read", {"path": "a"}, {"content": []}, is_error=True)
    assert done.error == "the tool failed without a message"


@pytest.mark.parametrize("name", ["grep", "find", "ls", "another"])
def test_other_tools_have_no_file_effects(name: str) -> None:
    assert files(name, {"path": "."}, result("x")) == ()


def test_read_is_emitted() -> None:
    assert files("read", {"path": "a.txt", "offset": 3}, result("x")) == (facts.FileRead("a.txt"),)


# -- numbered diffs


@pytest.mark.parametrize(
    ("shown", "hunks"),
    [
        ("+1 a\n+2 b", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("-1 a\n-2 b", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
        (" 1 a\n+2 b\n 2 c", "@@ -1,2 +1,3 @@\n a\n+b\n c\n"),
        (
            "   1 a\n+  2 b\n   ...\n  90 x\n- 91 y\n+ 92 z",
            "@@ -1,1 +1,2 @@\n a\n+b\n@@ -90,2 +91,2 @@\n x\n-y\n+z\n",
        ),
    ],
)
def test_numbered_lines_become_hunks(shown: str, hunks: str) -> None:
    assert from_numbered("f", shown) == f"--- a/f\n+++ b/f\n{hunks}"


@pytest.mark.parametrize("shown", ["", "...", "no numbers here"])
def test_text_without_numbered_lines_is_no_diff(shown: str) -> None:
    assert from_numbered("f", shown) == ""
