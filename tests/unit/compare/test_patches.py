"""Patches of workspaces reproduce byte for byte what an agent made, whatever it did to the repository."""

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.worktrees.test_worktree import commit, git

from agent_mux.compare.frozen_start import FrozenStart, Workspace
from agent_mux.compare.records import StoredPatch
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees import removal

LATIN = os.fsdecode(b"n\xe4me")
CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {}
"""What an agent does, and the files that the patch names."""


def change(*files: str) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    def add(function: Callable[[Path], object]) -> Callable[[Path], object]:
        CHANGES[function.__name__] = function, files
        return function

    return add


@change("README")
def same_size(top: Path) -> None:
    path = top / "README"
    state = path.stat()
    while int(path.stat().st_ctime) == int(state.st_ctime):  # git compares whole seconds
        time.sleep(0.05)
        path.write_text("HELLO\n")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@change("README")
def mode(top: Path) -> None:
    (top / "README").chmod(0o755)


@change("README")
def deleted(top: Path) -> None:
    (top / "README").unlink()


@change("new")
def binary(top: Path) -> None:
    (top / "new").write_bytes(bytes(range(256)) * 40)


@change("link", "gone")
def links(top: Path) -> None:
    (top / "link").symlink_to("README")
    (top / "gone").symlink_to("/no/such place")


@change("with space", "line\nfeed", '"quoted"', "tab\t", "n\ufffdme", "-rf", "*")
def names(top: Path) -> None:
    for name in ("with space", "line\nfeed", '"quoted"', "tab\t", LATIN, "-rf", "*"):
        (top / name).write_text("x\n")


@change("crlf.txt", "mixed.txt")
def line_endings(top: Path) -> None:
    (top / "crlf.txt").write_bytes(b"one\r\nchanged\r\nthree\r\n")
    (top / "mixed.txt").write_bytes(b"one\r\ntwo\nthree\r")


@change("README", "README/inner")
def file_becomes_directory(top: Path) -> None:
    (top / "README").unlink()
    (top / "README").mkdir()
    (top / "README" / "inner").write_text("x")


@change("deep", "deep/down/file")
def directory_becomes_link(top: Path) -> None:
    shutil.rmtree(top / "deep")
    (top / "deep").symlink_to("/")


@change("kept")
def empty_directory(top: Path) -> None:
    (top / "empty" / "inner").mkdir(parents=True)
    (top / "kept").write_text("")


@change("nested/file", "nested/committed")
def nested_repository(top: Path) -> None:
    (top / "nested").mkdir()
    git(top / "nested", "init", "--quiet")
    (top / "nested" / "committed").write_text("x\n")
    commit(top / "nested")
    (top / "nested" / "file").write_text("x\n")
    (top / "nested" / "hidden.txt").write_text("x\n")
    (top / "nested" / ".git" / "info").mkdir(exist_ok=True)
    (top / "nested" / ".git" / "info" / "exclude").write_text("file\n")
    (top / "nested" / "hidden.txt").unlink()


@change("unborn/file")
def nested_repository_without_commit(top: Path) -> None:
    (top / "unborn").mkdir()
    git(top / "unborn", "init", "--quiet")
    (top / "unborn" / "file").write_text("x\n")


@change("deep/down/file", "deep/new")
def repository_in_a_tracked_directory(top: Path) -> None:
    git(top / "deep", "init", "--quiet")
    (top / "deep" / "down" / "file").write_text("changed\n")
    (top / "deep" / "new").write_text("new\n")


@change(".gitignore", "seen")
def ignore_file(top: Path) -> None:
    (top / ".gitignore").write_text("*.log\nbuild/\n")
    (top / "build").mkdir()
    (top / "build" / "output").write_text("x\n")
    (top / "seen").write_text("x\n")


@change("README", "more")
def committed(top: Path) -> None:
    (top / "README").write_text("better\n")
    (top / "more").write_text("more\n")
    commit(top)
    git(top, "checkout", "--quiet", "-b", "elsewhere")


@change("README")
def repository_deleted(top: Path) -> None:
    shutil.rmtree(top / ".git")
    (top / "README").write_text("better\n")


@change("README")
def repository_replaced(top: Path) -> None:
    shutil.rmtree(top / ".git")
    (top / ".git").write_text("gitdir: /nowhere\n")
    (top / "README").write_text("better\n")


@change("README")
def hidden_from_git(top: Path) -> None:
    git(top, "update-index", "--assume-unchanged", "README")
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "attributes").write_text("* -diff\n")
    (top / "README").write_text("better\n")


@pytest.fixture
def repository(repository: Path) -> Path:
    (repository / "crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (repository / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    commit(repository)
    (repository / "README").write_text("dirty\n")
    return repository


def files_of(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of each file, without those of git and ignored ones."""
    found = {}
    for place, directories, names in os.walk(top):
        directories[:] = [name for name in directories if name not in {".git", "build"}]
        linked = [name for name in directories if Path(place, name).is_symlink()]
        for name in (*names, *linked):
            path = Path(place, name)
            if name != ".git":
                data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
                found[str(path.relative_to(top))] = (path.lstat().st_mode & 0o170111, data)
    return found


def patch_of(workspace: Workspace, tmp_path: Path) -> StoredPatch:
    return workspace.write_patch(tmp_path / "changes.patch", "changes.patch")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_patch_reproduces_the_result(
    name: str, repository: Path, start: FrozenStart, workspace: Workspace, tmp_path: Path
) -> None:
    act, files = CHANGES[name]
    act(workspace.path)
    stored = patch_of(workspace, tmp_path)
    assert {one.path for one in stored.files} == set(files)
    assert stored.size == (tmp_path / "changes.patch").stat().st_size
    expected = files_of(workspace.path)
    assert files_of(start.check_out(tmp_path / "w" / "checked", stored.end).path) == expected
    git(repository, "apply", "--whitespace=nowarn", str(tmp_path / "changes.patch"))
    assert files_of(repository) == expected
    applied = start.make_workspace(tmp_path / "w" / "applied")
    applied.apply(tmp_path / "changes.patch")
    assert applied.snapshot() == stored.end


@pytest.mark.slow
def test_no_change_is_an_empty_patch(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.path / "README").touch()
    (workspace.path / "ignored.log").write_text("x")
    stored = patch_of(workspace, tmp_path)
    assert (stored.size, stored.files, stored.start) == (0, (), stored.end)


def test_counts_of_lines_and_kinds_are_stored(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.path / "README").write_text("one\ntwo\n")
    (workspace.path / "new").write_bytes(b"\0")
    (workspace.path / "deep" / "down" / "file").unlink()
    files = {one.path: (one.change, one.added, one.removed) for one in patch_of(workspace, tmp_path).files}
    assert files == {
        "README": ("modified", 2, 1),
        "new": ("created", None, None),
        "deep/down/file": ("deleted", 0, 1),
    }


def test_line_endings_by_attributes_are_reproduced(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("*.txt text eol=crlf\n*.sh text eol=lf\n* ident\n")
    (repository / "run.sh").write_text("echo\n# $Id$\n")
    commit(repository)
    start = FrozenStart.freeze(repository, tmp_path / "c", os.environ)
    workspace = start.make_workspace(tmp_path / "w")
    (workspace.path / "crlf.txt").write_bytes(b"one\r\nnew\r\nthree\r\n")
    (workspace.path / "new.txt").write_bytes(b"a\r\nb\r\n")
    stored = patch_of(workspace, tmp_path)
    assert {one.path for one in stored.files} == {"crlf.txt", "new.txt"}
    expected = files_of(workspace.path)
    assert files_of(start.check_out(tmp_path / "checked", stored.end).path) == expected
    git(repository, "apply", str(tmp_path / "changes.patch"))
    assert files_of(repository) == expected


def test_checkout_has_results_of_setup_and_is_not_the_workspace(repository: Path, tmp_path: Path) -> None:
    setup = ("sh", "-c", "echo built > built.log")
    start = FrozenStart.freeze(repository, tmp_path / "c", os.environ, setup=setup)
    workspace = start.make_workspace(tmp_path / "w")
    (workspace.path / "README").write_text("better\n")
    (workspace.path / "built.log").write_text("tampered")
    checkout = start.check_out(tmp_path / "x", workspace.snapshot())
    assert (checkout.path / "built.log").read_text() == "built\n"
    assert (checkout.path / "README").read_text() == "better\n"


def test_protected_files_are_restored(start: FrozenStart, workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "down").mkdir(parents=True)
    (outside / "down" / "file").write_text("outside\n")
    shutil.rmtree(workspace.path / "deep")
    (workspace.path / "deep").symlink_to(outside)
    (workspace.path / "conftest.py").write_text("cheat\n")
    (workspace.path / "README").unlink()
    start.restore(workspace, ["deep/down/file", "conftest.py", "README"])
    assert workspace.snapshot() == start.record.tree
    assert not (workspace.path / "conftest.py").exists()
    assert (outside / "down" / "file").read_text() == "outside\n"


def test_directories_are_restored(start: FrozenStart, workspace: Workspace) -> None:
    (workspace.path / "deep" / "more").write_text("x")
    (workspace.path / "deep" / "down" / "file").write_text("x")
    start.restore(workspace, ["deep"])
    assert workspace.snapshot() == start.record.tree


def test_workspace_with_read_only_directories_is_removed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = workspace.path / "closed" / "inner"
    place.mkdir(parents=True)
    (place / "locked").touch()
    real = os.unlink

    def unlink(path: str, *arguments: object, **options: int) -> None:
        if path.endswith("locked") and not stat.S_IMODE(place.stat().st_mode):  # root passes all permissions
            raise PermissionError(13, "Permission denied", path)
        real(path, *arguments, **options)

    for path in (place, place.parent):
        path.chmod(0)
    monkeypatch.setattr(os, "unlink", unlink)
    removal.remove_directory(workspace.path)
    assert not workspace.path.exists()


def test_what_is_mounted_in_a_workspace_is_not_removed(workspace: Workspace, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", workspace.path / "a b"
    for path in (outside, inside):
        path.mkdir()
    (outside / "file").touch()
    done = subprocess.run(["mount", "--bind", str(outside), str(inside)], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("cannot mount")
    workspace.remove()
    assert not workspace.path.exists()
    assert (outside / "file").exists()


def test_what_cannot_be_removed_is_one_error(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted", "file")

    monkeypatch.setattr(removal.shutil, "rmtree", fail)
    monkeypatch.setattr(removal, "_PAUSES", (0.0,))
    with pytest.raises(AgentMuxError, match=r"cannot be removed: file: Operation not permitted; remove it yourself"):
        workspace.remove()
