"""`multi_edit`, decisions on single edits, and reading before editing."""

import re
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.tools.builtin.edit import (
    EditDecision,
    EditOutcome,
    EditReport,
    inject_outcomes,
    parse_edit_outcomes,
    report_text,
)
from agent_loop.tools.builtin.replacements import Edit, apply_edit
from agent_loop.tools.effects import FilePatched

pytestmark = pytest.mark.anyio
SMALL = st.text("ab\n", min_size=1, max_size=3)
EDITS = st.lists(st.builds(Edit, SMALL, SMALL, st.booleans()), min_size=1, max_size=4)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def hunks(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"old_string": old, "new_string": new} for old, new in pairs]


async def test_multi_edit_applies_in_order(files: Files) -> None:
    files.put("a", "one\n")
    result = await files.call("multi_edit", path="a", edits=hunks(("one", "two"), ("two", "three")))
    assert result.text == "Edited a: applied 2 edits, replaced 2 places."
    assert files.get("a") == b"three\n"
    assert [effect.path for effect in result.effects if isinstance(effect, FilePatched)] == ["a"]


async def test_multi_edit_is_atomic_and_names_the_failed_edit(files: Files) -> None:
    files.put("a", "one\n")
    with pytest.raises(ToolError, match="edit 2 of 3, in the result of those before it: old_string was"):
        await files.call("multi_edit", path="a", edits=hunks(("one", "two"), ("zzz", "y"), ("two", "x")))
    assert files.get("a") == b"one\n"


async def test_multi_edit_gated_reports_each_hunk_independently(files: Files) -> None:
    files.put("a", "one\ntwo\nthree\n")
    arguments = {"path": "a", "edits": hunks(("one", "1"), ("two", "2"), ("zzz", "z"))}
    decisions = [
        EditDecision(approved=True),
        EditDecision(approved=False, reason="not\nnow"),
        EditDecision(approved=True),
    ]
    result = await files.call("multi_edit", **inject_outcomes(arguments, decisions))
    assert files.get("a") == b"1\ntwo\nthree\n"
    assert result.text.startswith(
        "Edited a: 1/3 applied · 1 denied · 1 failed\n1. applied\n2. denied: not\\nnow\n3. failed: old"
    )
    report = parse_edit_outcomes(result.text)
    assert report is not None
    assert (report.path, [outcome.kind for outcome in report.outcomes]) == ("a", ["applied", "denied", "failed"])
    assert report.outcomes[1].reason == "not\nnow"
    assert not result.is_error


async def test_multi_edit_gated_where_all_is_denied_changes_nothing(files: Files) -> None:
    files.put("a", "one\n")
    arguments = inject_outcomes({"path": "a", "edits": hunks(("one", "1"))}, [EditDecision(approved=False)])
    result = await files.call("multi_edit", **arguments)
    assert (result.text, result.effects, result.is_error) == ("Edited a: 0/1 applied · 1 denied\n1. denied", (), False)


async def test_multi_edit_gated_needs_a_decision_for_each_edit(files: Files) -> None:
    files.put("a", "one\n")
    with pytest.raises(InvalidArgumentsError, match="2 edits and 1 outcomes"):
        await files.call("multi_edit", path="a", edits=hunks(("one", "1"), ("1", "2")), _outcomes=[{"approved": True}])
    assert "_outcomes" not in files.tools["multi_edit"].parameters["properties"]


@given(
    path=st.text(max_size=10),
    outcomes=st.lists(
        st.builds(EditOutcome, st.sampled_from(["applied", "denied", "failed"]), st.text(max_size=10).map(str.strip)),
        max_size=4,
    ),
)
def test_parse_edit_outcomes_reads_every_report_back(path: str, outcomes: list[EditOutcome]) -> None:
    report = EditReport(path, tuple(outcomes))
    assert parse_edit_outcomes(report_text(report)) == report


@pytest.mark.parametrize(
    "text", ["", "Edited a: applied 2 edits.", "Edited a: 1/2 applied\n1. applied", "Edited a: 1/1 applied\n1. done"]
)
def test_parse_edit_outcomes_returns_none_for_other_text(text: str) -> None:
    assert parse_edit_outcomes(text) is None


@given(text=st.text("ab\n", max_size=12), edits=EDITS)
def test_multi_edit_applies_all_edits_or_leaves_the_file(text: str, edits: list[Edit]) -> None:
    """What is on the disk is all edits one after the other, or what was there before."""
    expected: str | None = text
    for edit in edits:
        try:
            expected = None if expected is None else apply_edit(expected, edit).text
        except ToolError:
            expected = None

    async def run() -> None:
        with tempfile.TemporaryDirectory() as root:
            files = Files(Path(root))
            files.put("a", text)
            given = [
                {"old_string": e.old_string, "new_string": e.new_string, "replace_all": e.replace_all} for e in edits
            ]
            if expected is None:
                with pytest.raises(ToolError):
                    await files.call("multi_edit", path="a", edits=given)
            else:
                await files.call("multi_edit", path="a", edits=given)
            assert files.get("a").decode() == (text if expected is None else expected)
            assert [entry.name for entry in files.workspace.list()] == ["a"]

    anyio.run(run)


@pytest.mark.parametrize("tool", ["edit", "multi_edit"])
async def test_require_read_before_edit_rejects_without_a_read_and_after_a_drift(tmp_path: Path, tool: str) -> None:
    files = Files(tmp_path, require_read_before_edit=True)
    files.put("a", "one\n")

    async def change(old: str, new: str) -> None:
        edit = {"old_string": old, "new_string": new}
        await files.call(tool, path="a", **(edit if tool == "edit" else {"edits": [edit]}))

    with pytest.raises(ToolError, match="a was not read yet; read it with read_file before you edit it"):
        await change("one", "two")
    await files.call("read_file", path="a")
    await change("one", "two")
    await change("two", "three")  # an edit counts as a read
    files.put("a", "three!\n")
    with pytest.raises(ToolError, match=re.escape("a was changed since you read it; read it again before you edit it")):
        await change("three", "four")
    assert files.get("a") == b"three!\n"
    await files.call("read_file", path="a")
    await change("three", "four")
    assert files.get("a") == b"four!\n"


async def test_require_read_before_edit_counts_what_was_written_and_other_names_of_the_file(tmp_path: Path) -> None:
    files = Files(tmp_path, require_read_before_edit=True)
    await files.call("write_file", path="a", content="one\n")
    (tmp_path / "link").symlink_to("a")
    await files.call("edit", path="link", old_string="one", new_string="two")
    assert files.get("a") == b"two\n"
    assert list(files.state.reads) == ["a"]
