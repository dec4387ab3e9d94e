"""Diffs of requested edits: against files in the working directory, and nothing else."""

import os
from pathlib import Path

import pytest

from agent_mux.run.edit_preview import MAX_FILE_SIZE, diff_of_edits, read_files
from agent_mux.sdk.facts import FileEdit
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.unified_diff import split_files

LINES = "".join(f"line {number}\n" for number in range(1, 11))


def preview(directory: Path, *edits: FileEdit) -> str:
    return diff_of_edits(edits, str(directory), read_files((edit.path for edit in edits), str(directory)))


def test_edit_has_the_line_numbers_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    diff = preview(tmp_path, FileEdit("a.txt", "LINE 5", "line 5"))
    assert diff == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+LINE 5\n"
        " line 6\n line 7\n line 8\n"
    )


def test_edits_of_one_file_are_applied_in_order_and_far_ones_have_their_own_hunks(tmp_path: Path) -> None:
    lines = ["same" if number in {10, 25} else f"line {number}" for number in range(1, 31)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    first = FileEdit(str(tmp_path / "a.txt"), "ONE\n", "line 1\n")
    diff = preview(tmp_path, first, FileEdit(first.path, "two", "ONE"), FileEdit(first.path, "SAME", "same", True))
    (file,) = split_files(diff)
    assert file.new_name == "b/a.txt"
    assert [line for line in file.lines if line[0] in "+-"] == [
        "-line 1", "+two", "-same", "+SAME", "-same", "+SAME",
    ]  # fmt: skip
    assert sum(line.startswith("@@") for line in file.lines) == 3


def test_whole_content_is_compared_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("same\nold\n")
    assert "@@ -1,2 +1,2 @@\n same\n-old\n+new\n" in preview(tmp_path, FileEdit("a.txt", "same\nnew\n"))
    assert preview(tmp_path, FileEdit("a.txt", "same\nold\n")) == ""
    assert preview(tmp_path, FileEdit("new.txt", "x\n")).startswith("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n")


def test_text_without_carriage_returns_matches_a_file_with_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert "-one\n-two\n+1\n+2\n" in preview(tmp_path, FileEdit("a.txt", "1\n2\n", "one\ntwo\n"))


def test_edit_that_does_not_match_the_file_is_shown_by_its_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("something else\n")
    assert preview(tmp_path, FileEdit("a.txt", "new", "old")) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n"
    )


def test_cell_of_a_notebook_is_compared(tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_text('{"cells": [{"id": "c1", "source": ["a = 1\\n", "b = 2\\n"]}]}')
    edits = edits_of({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "a = 1\nb = 3\n"})
    assert " a = 1\n-b = 2\n+b = 3\n" in preview(tmp_path, *edits)


@pytest.mark.parametrize("case", ["outside", "link", "linked directory", "fifo", "directory", "itself", "nul"])
def test_other_files_are_not_read(tmp_path: Path, case: str) -> None:
    secret, inside = tmp_path / "secret.txt", tmp_path / "work"
    secret.write_text("secret\n")
    inside.mkdir()
    path = inside / "a.txt"
    match case:
        case "outside":
            path = Path("../secret.txt")
        case "link":
            path.symlink_to(secret)
        case "linked directory":
            (inside / "sub").symlink_to(tmp_path)
            path = inside / "sub" / "secret.txt"
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "itself":
            path = inside
        case "nul":
            path = inside / "a\0b"
    assert read_files([str(path)], str(inside)) == {}
    assert "secret" not in diff_of_edits([FileEdit("x", "new\n")], str(inside), read_files([str(path)], str(inside)))


@pytest.mark.parametrize(("content", "reason"), [
    (b"\x89PNG\0", "binary, 5 bytes"),
    (b"\xff\xfe", "not UTF-8, 2 bytes"),
    (b"x" * (MAX_FILE_SIZE + 1), "1,048,577 bytes"),
])  # fmt: skip
def test_content_that_a_write_would_replace_is_never_presented_as_nothing(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    diff = preview(tmp_path, FileEdit("a.bin", "new\n"))
    note = f"# a.bin has content that is not shown: {reason}\n"
    assert diff == note + "--- a/a.bin\n+++ b/a.bin\n@@ -0,0 +1,1 @@\n+new\n"
    assert not preview(tmp_path, FileEdit("a.bin", "new\n", "old\n")).startswith("#")


def test_link_inside_the_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("real\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    assert read_files(["link.txt"], str(tmp_path)) == {"link.txt": "real\n"}


def test_many_changed_lines_are_one_hunk(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(5000)))
    diff = preview(tmp_path, FileEdit("a.txt", "".join(f"{number * 2}\n" for number in range(5000))))
    assert diff.count("@@ -") == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"file_path": "a", "content": "x"}, [FileEdit("a", "x")]),
        ({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": True}, [FileEdit("a", "y", "x", True)]),
        ({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, 5]}, [FileEdit("a", "y", "x")]),
        ({"path": "a", "old_str": "x"}, [FileEdit("a", "", "x")]),
        ({"notebook_path": "a", "new_source": "x", "edit_mode": "insert"}, [FileEdit("a", "x", "", cell="new")]),
        ({"path": "a", "query": "x"}, []),
        ({"content": "x"}, []),
        ({"path": 5, "content": "x"}, []),
        ("text", []),
        (None, []),
    ],
)
def test_edits_are_recognized_by_field_names(given: object, expected: list[FileEdit]) -> None:
    assert list(edits_of(given)) == expected


def test_a_removed_line_that_looks_like_a_header_is_part_of_the_hunk() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/y\n+++ b/y\n \\\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n"
    first, second = split_files(diff)
    assert first.lines == ["@@ -1,2 +1,1 @@", "--- a/y", "+++ b/y", " \\"]
    assert second == ("a/z", "b/z", ["@@ -1 +1 @@", "-a", "+b"])
