"""Effects of file tools."""

from typing import Any

import pytest

from agent_mux.sdk.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten
from agent_mux_adapters.hermes.tools import HermesEdits

PROJECT = "/home/dev/project"


def effects(name: str, arguments: dict[str, Any], result: Any = None, **payload: Any) -> tuple[FileEffect, ...]:
    return HermesEdits(PROJECT).effects_of(name, arguments, {"result": result or {}, **payload})


def replaced(diff: str, path: str = f"{PROJECT}/a.txt") -> FilePatched:
    arguments = {"mode": "replace", "path": "a.txt", "old_string": "two", "new_string": "TWO"}
    head = f"--- a/{path}\n+++ b/{path}\n"
    (patched,) = effects("patch", arguments, {"success": True, "diff": head + diff, "resolved_path": path})
    assert isinstance(patched, FilePatched)
    return patched


def test_a_file_is_read_at_the_path_of_the_call() -> None:
    assert effects("read_file", {"path": "a.txt"}) == (FileRead("a.txt"),)


@pytest.mark.parametrize(
    ("shown", "content", "created"),
    [
        ("  ┊ review diff\n\x1b[38;2;1m@@ -0,0 +1,2 @@\x1b[0m\n", "é\n", True),
        ("  ┊ review diff\n\x1b[38;2;1m@@ -1,3 +1 @@\x1b[0m\n", "é\n", False),
        ("", "", True),  # an empty file has no diff
        ("", "as before\n", False),
    ],
)
def test_that_a_file_is_new_shows_in_the_diff(shown: str, content: str, created: bool) -> None:
    arguments = {"path": "a.txt", "content": content}
    (written,) = effects("write_file", arguments, {"resolved_path": f"{PROJECT}/a.txt"}, inline_diff=shown)
    assert written == FileWritten(f"{PROJECT}/a.txt", len(content.encode()), created)


def test_a_file_is_new_once() -> None:
    edits = HermesEdits(PROJECT)
    arguments = {"path": "a.txt", "content": ""}
    found = [effect for _ in range(2) for effect in edits.effects_of("write_file", arguments, {"result": {}})]
    assert [effect.created for effect in found] == [True, False]


def test_the_header_of_a_diff_can_be_applied_in_the_project() -> None:
    assert replaced("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n") == FilePatched(
        f"{PROJECT}/a.txt", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
    )
    elsewhere = replaced("@@ -1 +1 @@\n-two\n+TWO\n", "/etc/motd")
    assert elsewhere.diff.startswith("--- a/etc/motd\n+++ b/etc/motd\n@@ ")


def test_a_last_line_without_a_newline_is_marked() -> None:
    assert replaced("@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three").diff.endswith(
        "\n three\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    "diff", ["@@ -1,2 +1,2 @@\n one\n-two+TWO", "@@ -1,2 +1,2 @@\n one\n-two+TWO\n", "", "@@ -1 +1 @@"]
)
def test_an_invalid_diff_is_rebuilt_from_the_replacement(diff: str) -> None:
    assert replaced(diff).diff.split("\n")[2:5] == ["@@ -1,1 +1,1 @@", "-two", "\\ No newline at end of file"]


def test_a_patch_of_several_files_has_one_effect_per_file() -> None:
    diff = (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\n"
        "--- /dev/null\n+++ b/new/b.txt\n+hello\n+world\n"
        "--- a/d.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\n"
        "# Moved: m.txt -> m2.txt"
    )
    assert effects("patch", {"mode": "patch", "patch": "*** Begin Patch"}, {"diff": diff}) == (
        FilePatched("a.txt", "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"),
        FileWritten("new/b.txt", len("hello\nworld"), created=True),
        FileDeleted("d.txt"),
        FileDeleted("m.txt"),
    )


def test_other_tools_touch_no_files() -> None:
    assert effects("search_files", {"path": "."}, {"total_count": 0}) == ()
