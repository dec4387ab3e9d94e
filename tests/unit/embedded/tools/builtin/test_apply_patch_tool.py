"""`apply_patch`: both formats, one match per hunk, all files or none."""

import stat
from pathlib import Path

import pytest
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.apply_patch import ApplyPatchTool
from agent_loop.tools.builtin.patch_hunks import apply_hunks
from agent_loop.tools.effects import FileDeleted, FilePatched, FileWritten
from agent_loop.tools.patch_format import parse_patch
from agent_loop.workspace import Workspace

pytestmark = pytest.mark.anyio

SEVERAL = """\
*** Begin Patch
*** Update File: a.py
@@
 one
-two
+2
 three
*** Add File: new/b.txt
+hello
+world
*** Delete File: c.txt
*** Update File: d.sh
*** Move to: bin/d.sh
-old
+new
*** End Patch
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def put_several(files: Files) -> None:
    files.put("a.py", "one\ntwo\nthree\n")
    files.put("c.txt", "gone\n")
    files.put("d.sh", "old\n")
    (files.root / "d.sh").chmod(0o755)


def update(*lines: str, path: str = "a") -> str:
    return "\n".join(["*** Begin Patch", f"*** Update File: {path}", *lines, "*** End Patch"])


def content_of_all(files: Files) -> dict[str, bytes]:
    return {str(path.relative_to(files.root)): path.read_bytes() for path in files.root.rglob("*") if path.is_file()}


async def test_patch_changes_adds_deletes_and_moves_files(files: Files) -> None:
    put_several(files)
    result = await files.call("apply_patch", patch=SEVERAL)
    assert result.text == "Applied the patch:\nM a.py\nA new/b.txt\nD c.txt\nR d.sh -> bin/d.sh"
    assert content_of_all(files) == {"a.py": b"one\n2\nthree\n", "new/b.txt": b"hello\nworld\n", "bin/d.sh": b"new\n"}
    assert stat.S_IMODE((files.root / "bin/d.sh").stat().st_mode) == 0o755


async def test_each_change_of_a_patch_is_an_effect(files: Files) -> None:
    put_several(files)
    patched, written, deleted, *moved = (await files.call("apply_patch", patch=SEVERAL)).effects
    assert isinstance(patched, FilePatched)
    assert "-two\n+2" in patched.diff
    assert written == FileWritten("new/b.txt", 12, created=True)
    assert deleted == FileDeleted("c.txt")
    assert moved == [FileDeleted("d.sh"), FileWritten("bin/d.sh", 4, created=True)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("*** Update File: e\n-nowhere\n+x", "e: hunk 1 of 1: its lines were not found"),
        ("*** Update File: missing\n-a\n+b", "missing: 'missing' does not exist"),
        ("*** Add File: a.py\n+x", "a.py: the file exists already"),
        ("*** Delete File: missing", "missing: 'missing' does not exist"),
        ("*** Update File: e\n*** Move to: a.py\n-x\n+y", "e: a.py exists already"),
        ("*** Add File: ../outside\n+x", "leads out of the workspace"),
        ("*** Update File: e\n*** Move to: ../outside\n-x\n+y", "leads out of the workspace"),
        ("*** Delete File: folder", "folder: it is no regular file"),
        ("*** Update File: e\n x", "e: the patch changes nothing"),
    ],
)
async def test_patch_with_one_wrong_part_changes_nothing(files: Files, wrong: str, message: str) -> None:
    put_several(files)
    files.put("e", "x\n")
    files.put("folder/f", "")
    before = content_of_all(files)
    patch = SEVERAL.replace("*** End Patch", f"{wrong}\n*** End Patch")
    with pytest.raises(ToolError) as raised:
        await files.call("apply_patch", patch=patch)
    assert str(raised.value).startswith("nothing was changed: ")
    assert message in str(raised.value)
    assert content_of_all(files) == before
    assert not (files.root.parent / "outside").exists()


async def test_failing_write_restores_the_files_before_it(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    put_several(files)
    before = content_of_all(files)

    def refuse(self: Workspace, path: object) -> None:
        raise WorkspaceError(f"{path} cannot be deleted: the disk is read-only")

    monkeypatch.setattr(Workspace, "delete", refuse)
    patch = SEVERAL.replace("*** Add File: new/b.txt\n+hello\n+world\n", "")
    with pytest.raises(WorkspaceError, match=r"nothing was changed: c\.txt cannot be deleted"):
        await files.call("apply_patch", patch=patch)
    assert content_of_all(files) == before
    assert stat.S_IMODE((files.root / "d.sh").stat().st_mode) == 0o755


async def test_links_out_of_the_workspace_are_neither_changed_nor_deleted(files: Files, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("secret\n")
    (files.root / "link").symlink_to(outside)
    for change in ("*** Update File: link\n-secret\n+x", "*** Delete File: link"):
        with pytest.raises(ToolError):
            await files.call("apply_patch", patch=f"*** Begin Patch\n{change}\n*** End Patch")
    assert outside.read_text() == "secret\n"
    assert (files.root / "link").is_symlink()


# -- matching


async def test_hunk_that_fits_several_places_is_refused_with_their_lines(files: Files) -> None:
    files.put("a", "x\nsame\ny\nsame\n")
    with pytest.raises(ToolError, match=r"its lines occur 2 times \(in lines 2, 4\)"):
        await files.call("apply_patch", patch=update("-same", "+other"))


async def test_line_above_tells_equal_places_apart(files: Files) -> None:
    text = "class A:\n    def f(self):\n        pass\nclass B:\n    def f(self):\n        pass\n"
    files.put("a", text)
    await files.call(
        "apply_patch", patch=update("@@ class B:", "@@ def f(self):", "-        pass", "+        return 1")
    )
    assert files.get("a").decode() == text[: -len("        pass\n")] + "        return 1\n"
    with pytest.raises(ToolError, match=r"the line '@@ def f\(self\):' occurs 2 times"):
        await files.call("apply_patch", patch=update("@@ def f(self):", "-        pass", "+        x"))


async def test_part_of_a_line_is_no_match(files: Files) -> None:
    files.put("a", "return one\n")
    with pytest.raises(ToolError, match="its lines were not found; the nearest match is at line 1"):
        await files.call("apply_patch", patch=update("-return on", "+return two"))


async def test_differences_that_edit_tolerates_are_tolerated_and_reported(files: Files) -> None:
    files.put("a", "if x:  \n\tsay(“hi”)\n\tdone()\n")
    text = await files.text("apply_patch", patch=update(" if x:", '-    say("hi")', '+    say("ho")', "     done()"))
    assert "M a (lines of the patch differed from the file in indentation, quotes, dashes or spaces)" in text
    assert files.get("a").decode() == 'if x:  \n\tsay("ho")\n\tdone()\n'


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("a\r\nb\r\n", ("-a", "+c"), "c\r\nb\r\n"),
        ("a\nb", ("-b", "+c"), "a\nc"),
        ("a\n\nb\n", (" a", "", "-b", "+c"), "a\n\nc\n"),
        ("a\nb\n", ("-a",), "b\n"),
        ("x\na\nx\n", ("-x", "+y", "*** End of File"), "x\na\ny\n"),
        ("a\nb\n", ("@@ a", "+new"), "a\nnew\nb\n"),
        ("a\n", ("+end",), "a\nend\n"),
        ("a", ("+end",), "a\nend\n"),
        ("", ("+first",), "first\n"),
        ("a\nb\nc\n", ("-a", "+1", "@@", "-c", "+3"), "1\nb\n3\n"),
    ],
)
async def test_line_ends_blank_lines_and_insertions(
    files: Files, before: str, lines: tuple[str, ...], after: str
) -> None:
    files.put("a", before)
    await files.call("apply_patch", patch=update(*lines))
    assert files.get("a").decode() == after


async def test_bytes_that_are_no_utf8_survive(files: Files) -> None:
    files.put("a", b"caf\xe9\nold\n")
    await files.call("apply_patch", patch=update("-old", "+new"))
    assert files.get("a") == b"caf\xe9\nnew\n"


async def test_two_sections_of_one_file_are_applied_in_order(files: Files) -> None:
    files.put("a", "one\n")
    patch = "*** Begin Patch\n*** Update File: a\n-one\n+two\n*** Update File: ./a\n-two\n+three\n*** End Patch"
    result = await files.call("apply_patch", patch=patch)
    assert (files.get("a"), len(result.effects)) == (b"three\n", 1)


# -- unified diffs

GIT = """\
diff --git a/a.txt b/a.txt
index 123..456 100644
--- a/a.txt
+++ b/a.txt
@@ -3,1 +3,1 @@ some function
-same
+other
@@ -5,0 +6,1 @@
+end
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+text
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/from.txt b/to.txt
similarity index 100%
rename from from.txt
rename to to.txt
"""


async def test_diff_of_git_is_applied_and_its_line_numbers_decide_between_equal_places(files: Files) -> None:
    files.put("a.txt", "same\n1\nsame\n2\n3\n4\n")
    files.put("gone.txt", "x\n")
    files.put("from.txt", "moved\n")
    text = await files.text("apply_patch", patch=GIT)
    assert text == "Applied the patch:\nM a.txt\nA new.txt\nD gone.txt\nR from.txt -> to.txt"
    assert content_of_all(files) == {
        "a.txt": b"same\n1\nother\n2\n3\nend\n4\n",
        "new.txt": b"text",
        "to.txt": b"moved\n",
    }


async def test_plain_diffs_of_several_files_are_applied(files: Files) -> None:
    files.put("a", "1\n")
    files.put("b", "1\n")
    await files.call(
        "apply_patch",
        patch="--- a\t2026-01-01\n+++ a\t2026-01-02\n@@ -1 +1 @@\n-1\n+2\n--- b\n+++ b\n@@ -1 +1 @@\n-1\n+3\n",
    )
    assert (files.get("a"), files.get("b")) == (b"2\n", b"3\n")


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("*** Begin Patch\n*** Update File: a\n-x\n+y\n", "has no line"),
        ("just text", "changes no file"),
        ("*** Begin Patch\nUpdate a\n*** End Patch", "is not the start of a file"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "must begin with '\\+'"),
        ("*** Begin Patch\n*** Update File: a\nx\n*** End Patch", "must begin with ' '"),
        ("*** Begin Patch\n*** Update File: \n*** End Patch", "has no path"),
        ("*** Begin Patch\n*** Delete File: a\n+x\n*** End Patch", "is deleted, but lines follow"),
        ("diff --git a/a b/a\nBinary files a/a and b/a differ\n", "cannot be patched"),
    ],
)
def test_text_that_is_no_patch_is_refused_with_the_line(patch: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        parse_patch(patch)


def test_final_newline_of_a_diff_is_applied() -> None:
    diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n"
    (change,) = parse_patch(diff)
    assert apply_hunks("x\n", change.hunks).text == "x"


# -- reads and previews


async def test_file_must_have_been_read_if_the_behavior_requires_it(tmp_path: Path) -> None:
    files = Files(tmp_path, require_read_before_edit=True)
    files.put("a", "one\n")
    with pytest.raises(ToolError, match="a was not read yet"):
        await files.call("apply_patch", patch=update("-one", "+two"))
    await files.call("read_file", path="a")
    await files.call("apply_patch", patch=update("-one", "+two"))
    await files.call("apply_patch", patch=update("-two", "+three"))
    assert files.get("a") == b"three\n"


def test_preview_of_a_patch_that_does_not_apply_names_its_files(files: Files) -> None:
    preview = ApplyPatchTool().preview({"patch": SEVERAL}, files.workspace)
    assert preview.paths == ("a.py", "new/b.txt", "c.txt", "d.sh", "bin/d.sh")
    assert preview.diff == ""


def test_preview_has_paths_and_diff_and_writes_nothing(files: Files) -> None:
    put_several(files)
    before = content_of_all(files)
    preview = ApplyPatchTool().preview({"patch": SEVERAL}, files.workspace)
    assert preview.paths == ("a.py", "new/b.txt", "c.txt", "d.sh", "bin/d.sh")
    assert "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" in preview.diff
    assert "--- /dev/null\n+++ b/new/b.txt\n" in preview.diff
    assert "--- a/c.txt\n+++ /dev/null\n" in preview.diff
    assert "--- a/d.sh\n+++ b/bin/d.sh\n" in preview.diff
    assert content_of_all(files) == before
