"""Edits whose old_string differs from the file as the copies of models do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import ToolError
from agent_loop.tools.builtin.replacements import Edit, apply_edit

CODE = "class A:\n    def one(self):   \n        return 1\n\n    def two(self):\n        return 2\n"


def edited(text: str, old: str, new: str, **known: bool) -> str:
    return apply_edit(text, Edit(old, new, **known)).text


def test_trailing_whitespace_of_the_file_may_be_missing() -> None:
    assert edited(
        CODE, "    def one(self):\n        return 1\n", "    def one(self):\n        return 7\n"
    ) == CODE.replace("return 1", "return 7")
    assert edited("a  \nb\nc", "a\nb", "x\ny") == "x\ny\nc"
    assert edited("a\nb", "a   \nb\n", "x\n") == "x"
    inside = edited(CODE, "one(self):\n        return", "one(self):\n        yield")
    assert inside == CODE.replace("return 1", "yield 1")
    assert edited("f(a,  \n\t\n  b)\n", "a,\n\n  b", "a,\n\n  c") == "f(a,  \n\n  c)\n"
    with pytest.raises(ToolError, match=r"2 places differ only in whitespace at the end of lines \(in lines 1, 3\)"):
        edited("(a \nb)\n(a \nb)\n", "a\nb", "c")


def test_indentation_may_be_missing_and_is_that_of_the_file() -> None:
    assert edited(CODE, "def two(self):\n    return 2\n", "def two(self):\n    if self:\n        return 3\n") == (
        CODE.replace("        return 2\n", "        if self:\n            return 3\n")
    )
    assert edited("\tif x:\n\t\ty()\n", "    if x:\n        y()\n", "    if x:\n        z()\n") == "\tif x:\n\t\tz()\n"
    assert edited("  x = 1\n  y\n", "x = 1\n  y", "x = 2\n  y") == "  x = 2\n  y\n"
    assert edited("  a\n  b\n", "    a\n    b", "    a\n  c\n    b") == "  a\nc\n  b\n"


def test_quotes_dashes_and_spaces_may_be_typographic() -> None:
    assert edited("say \u201chi\u201d \u2013 now\n", 'say "hi" - now', 'say "ho" - now') == 'say "ho" - now\n'
    assert edited("print('a')\n", "print(\u2018a\u2019)", "print('b')") == "print('b')\n"
    text = "# \u201cone\u201d\nx = 1\n"
    assert edited(text, '# "one"\nx = 1', '# "one"\nx = 2') == "# \u201cone\u201d\nx = 2\n"


def test_line_endings_of_the_file_are_kept() -> None:
    assert edited("a  \r\nb\r\nc\r\n", "a\nb\n", "a\nx\n") == "a  \r\nx\r\nc\r\n"


def test_exact_match_takes_precedence() -> None:
    assert edited("  a\na\n", "a\n", "b\n", replace_all=True) == "  b\nb\n"
    assert apply_edit("  a\n  b\n", Edit("a", "c")).difference == ""


def test_several_near_matches_are_ambiguous() -> None:
    text = "  x = 1\n  y\n    x = 1\n    y\n"
    with pytest.raises(ToolError, match=r"2 places differ only in indentation \(in lines 1, 3\)"):
        edited(text, "x = 1\ny\n", "x = 2\ny\n")
    assert edited(text, "x = 1\ny\n", "x = 2\ny\n", replace_all=True) == text.replace("1", "2")


@pytest.mark.parametrize("old", ["x = 1\nz", "= 1  \n", "\n\n\n"])
def test_other_differences_do_not_match(old: str) -> None:
    with pytest.raises(ToolError, match="was not found"):
        edited("  x = 1\n  y\n", old, "other")


@given(
    st.text("ab \n\t'\u2019\r", max_size=30), st.text("ab \n\t'", min_size=1, max_size=8), st.text("c\n", max_size=4)
)
def test_text_around_a_near_match_never_changes(text: str, old: str, new: str) -> None:
    try:
        made = apply_edit(text, Edit(old, new))
    except ToolError:
        return
    assert made.count == 1
    if made.difference:
        assert old not in text


@pytest.mark.anyio
async def test_result_of_an_edit_names_the_difference(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.put("a.py", CODE)
    text = await files.text("edit", path="a.py", old_string="def two(self):\n    return 2", new_string="two = 2")
    assert text == "Edited a.py: replaced 1 place (old_string differed from the file in indentation)."
    assert files.get("a.py").decode().endswith("\n    two = 2\n")
    edits = [{"old_string": "return 1", "new_string": "return 3"}, {"old_string": "two  =  2", "new_string": "x"}]
    with pytest.raises(ToolError, match="edit 2 of 2"):
        await files.text("multi_edit", path="a.py", edits=edits)
