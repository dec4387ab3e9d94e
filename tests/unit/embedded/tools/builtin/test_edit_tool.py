"""`edit`, and what an edit does to a text."""

import subprocess
from pathlib import Path

import anyio
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.file_changes import diff_of
from agent_loop.tools.builtin.near_matches import plain
from agent_loop.tools.builtin.replacements import Edit, apply_edit, without_line_numbers
from agent_loop.tools.effects import FilePatched

pytestmark = pytest.mark.anyio
SMALL = st.text("ab\n\r\t1é ", max_size=30)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_edit_replaces_and_returns_a_unified_diff(files: Files) -> None:
    files.put("a", "one\ntwo\nthree\n")
    result = await files.call("edit", path="a", old_string="two", new_string="2")
    assert result.text == "Edited a: replaced 1 place."
    assert result.effects == (FilePatched("a", "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"),)
    assert files.get("a") == b"one\n2\nthree\n"


async def test_edit_of_a_byte_that_is_not_utf_8_does_not_advise_to_copy_it(files: Files) -> None:
    files.put("a", b"caf\xe9 au lait\n")
    with pytest.raises(ToolError, match="but \ufffd stands for a byte that is not UTF-8: replace text beside it"):
        await files.call("edit", path="a", old_string="caf\ufffd au lait", new_string="tea")
    await files.call("edit", path="a", old_string=" au lait", new_string=" noir")
    assert files.get("a") == b"caf\xe9 noir\n"


async def test_edit_fails_clearly_on_a_string_that_is_not_unique_unless_replace_all(files: Files) -> None:
    files.put("a", "x\ny\nx\n")
    with pytest.raises(ToolError, match=r"occurs 2 times \(in lines 1, 3\); add lines around it .* set replace_all"):
        await files.call("edit", path="a", old_string="x", new_string="z")
    assert files.get("a") == b"x\ny\nx\n"
    assert await files.text("edit", path="a", old_string="x", new_string="z", replace_all=True) == (
        "Edited a: replaced 2 places."
    )
    assert files.get("a") == b"z\ny\nz\n"


async def test_edit_strips_pasted_line_numbers_on_match(files: Files) -> None:
    files.put("a", "def f():\n\treturn 1\n")
    shown = (await files.text("read_file", path="a")).rstrip("\n")
    await files.call("edit", path="a", old_string=shown, new_string="1\tdef g():\n2\t\treturn 2")
    assert files.get("a") == b"def g():\n\treturn 2\n"


async def test_edit_prefers_the_exact_text_to_stripping(files: Files) -> None:
    files.put("a", "1\tx\nx\n")
    await files.call("edit", path="a", old_string="1\tx", new_string="2\ty")
    assert files.get("a") == b"2\ty\nx\n"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("1\ta\n2\tb", "a\nb"),
        ("  9\ta\n 10\tb\n", "a\nb\n"),
        ("1\ta\n3\tb", None),
        ("1\ta\nb", None),
        ("a", None),
        ("", None),
        ("4\t", None),
    ],
)
def test_line_numbers_are_stripped_only_where_every_line_has_one_and_they_count_up(text: str, bare: str | None) -> None:
    assert without_line_numbers(text) == bare


async def test_edit_that_matches_nothing_shows_the_nearest_match(files: Files) -> None:
    files.put("a", "import os\n\ndef compute(value):\n    return value + 1\n")
    with pytest.raises(ToolError) as caught:
        await files.call("edit", path="a", old_string="def compute(values):\n    return values", new_string="x")
    assert str(caught.value) == (
        "a was not changed: old_string was not found; the nearest match is at line 3, copy it exactly:\n"
        "3\tdef compute(value):\n4\t    return value + 1"
    )


async def test_edit_without_a_near_match_advises_what_to_do(files: Files) -> None:
    files.put("a", "aaaa\n")
    with pytest.raises(ToolError, match="was not found; read the file again and copy the text exactly"):
        await files.call("edit", path="a", old_string="zzzzzz", new_string="x")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfold\r\nx\r\n", b"\xef\xbb\xbfnew\r\nx\r\n"),  # a byte order mark and CRLF
        (b"old", b"new"),  # no final newline
        (b"caf\xe9 \xff old\r", b"caf\xe9 \xff new\r"),  # no UTF-8, and a lone carriage return
        (b"\0old\0", b"\0new\0"),
    ],
)
async def test_edit_keeps_every_other_byte(files: Files, before: bytes, after: bytes) -> None:
    files.put("a", before)
    result = await files.call("edit", path="a", old_string="old", new_string="new")
    assert files.get("a") == after
    assert all(effect.diff.encode() for effect in result.effects if isinstance(effect, FilePatched))


async def test_edit_takes_over_the_line_ends_of_the_file(files: Files) -> None:
    files.put("a", "one\r\ntwo\r\nthree\r\n")
    await files.call("edit", path="a", old_string="one\ntwo", new_string="1\n2\n2b")
    assert files.get("a") == b"1\r\n2\r\n2b\r\nthree\r\n"


async def test_edit_refuses_what_means_nothing(files: Files) -> None:
    files.put("a", "x")
    for old, new, message in (
        ("", "y", "old_string is empty"),
        ("x", "x", "are the same"),
        ("x", "\ud800", "UTF-8 cannot"),
    ):
        with pytest.raises(ToolError, match=message):
            await files.call("edit", path="a", old_string=old, new_string=new)
    with pytest.raises(WorkspaceError, match="does not exist"):
        await files.call("edit", path="nope", old_string="x", new_string="y")
    with pytest.raises(WorkspaceError, match="leads out"):
        await files.call("edit", path="../a", old_string="x", new_string="y")


async def test_edits_of_one_file_side_by_side_all_count(files: Files) -> None:
    files.put("a", "".join(f"<{n}>\n" for n in range(20)))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(lambda n=n: files.call("edit", path="a", old_string=f"<{n}>", new_string=f"[{n}]"))
    assert files.get("a").decode() == "".join(f"[{n}]\n" for n in range(20))


@given(text=SMALL, old=SMALL, new=SMALL, replace_all=st.booleans())
def test_where_the_exact_text_is_there_an_edit_is_str_replace(
    text: str, old: str, new: str, *, replace_all: bool
) -> None:
    assume(old and old != new)
    count = text.count(old)
    edit = Edit(old, new, replace_all)
    if count == 1 or (count > 1 and replace_all):
        assert apply_edit(text, edit).text == text.replace(old, new)
        assert apply_edit(text, edit).count == count
    elif count > 1:
        with pytest.raises(ToolError, match=f"occurs {count} times"):
            apply_edit(text, edit)


@given(text=SMALL, old=SMALL, new=SMALL, replace_all=st.booleans())
def test_what_is_replaced_without_an_exact_match_differs_in_whitespace_line_numbers_or_quotes(
    text: str, old: str, new: str, *, replace_all: bool
) -> None:
    assume(old and old != new and old not in text)
    try:
        done = apply_edit(text, Edit(old, new, replace_all))
    except ToolError:
        return
    assert done.count >= 1
    assert "\t" in old or without_whitespace(old) in without_whitespace(text)


def without_whitespace(text: str) -> str:
    return "".join(plain(text).split())


@given(before=st.lists(st.sampled_from("abc"), max_size=40), after=st.lists(st.sampled_from("abc"), max_size=40),
       ends=st.tuples(st.booleans(), st.booleans()))  # fmt: skip
def test_a_diff_is_what_patch_needs(before: list[str], after: list[str], ends: tuple[bool, bool]) -> None:
    old, new = ("\n".join(lines) + "\n" * end for lines, end in zip((before, after), ends, strict=True))
    assert patched(old, diff_of("f", old, new)) == new


def patched(text: str, diff: str) -> str:
    """Apply a unified diff to a text."""
    source, made, at = text.splitlines(keepends=True), [], 0
    lines = diff.splitlines(keepends=True)[2:]
    for index, line in enumerate(lines):
        ends = index + 1 < len(lines) and lines[index + 1].startswith("\\")
        content = line[1:].removesuffix("\n") if ends else line[1:]
        if line.startswith("@@"):
            begin, _, size = line.split()[1][1:].partition(",")
            start = int(begin) - (size != "0")
            made += source[at:start]
            at = start
        elif line[0] in " -":
            assert source[at] == content
            at += 1
        if line[0] in " +":
            made.append(content)
    return "".join(made + source[at:])


def test_git_applies_a_diff_of_a_large_change(tmp_path: Path) -> None:
    """Larger than what is compared line by line."""
    old = "head\n" + "".join(f"a{n}\n" for n in range(2500)) + "tail\n" * 5
    new = "head\n" + "".join(f"b{n}\n" for n in range(2500)) + "tail\n" * 5
    (tmp_path / "f").write_text(old)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff_of("f", old, new).encode(), check=True)
    assert (tmp_path / "f").read_text() == new
