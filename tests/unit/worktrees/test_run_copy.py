"""Copies of directories without a repository, for runs with `isolation="worktree"`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.worktrees.test_worktree import GIT, RUN, commit, git, home, plan, repository

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import RunOptions
from agent_mux.worktrees import directory_copies
from agent_mux.worktrees.kept import KeptWorktrees
from agent_mux.worktrees.run_copy import worktree_of
from agent_mux.worktrees.worktree import RunWorktree, plan_worktree

__all__ = ["home", "repository"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a directory with files, a secret, a repository inside, and ignored files."""
    place = tmp_path / "directory"
    (place / "nested").mkdir(parents=True)
    (place / "main.py").write_bytes(b"one\r\ntwo\n")
    (place / ".env").write_text("KEY=1\n")
    (place / ".gitignore").write_text("*.log\n")
    (place / "build.log").write_text("ignored\n")
    git(place / "nested", "init", "--quiet")
    (place / "nested" / "code").write_text("code\n")
    commit(place / "nested")
    return place


@pytest.fixture
def kept(tmp_path: Path) -> KeptWorktrees:
    return KeptWorktrees(tmp_path)


def create(directory: Path, tmp_path: Path, **options: object) -> tuple[RunWorktree, str]:
    wanted = RunOptions(agent="-", prompt="-", cwd=directory, isolation="worktree", **options)  # type: ignore[arg-type]
    made = worktree_of(plan_worktree(wanted, RUN, os.environ, tmp_path / "worktrees")[0], dict(os.environ))
    return made, made.create(lambda: True) or ""


def content_of(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_directory_is_copied_without_secrets_and_git_directories(directory: Path, tmp_path: Path) -> None:
    before = content_of(directory)
    worktree, note = create(directory, tmp_path)
    expected = {name: data for name, data in before.items() if name != ".env" and "/.git/" not in name}
    assert content_of(worktree.plan.path) == expected
    assert (worktree.plan.base, worktree.plan.cwd) == (None, str(worktree.plan.path))
    for part in (f"is a copy of {directory}, which is in no git repository", "secrets: .env;", "nested/.git"):
        assert part in note
    final, why = worktree.finish()
    assert (final.base_commit, final.is_changed, why) == (None, False, None)
    assert not worktree.plan.path.exists()
    assert list((tmp_path / "worktree-records").iterdir()) == []
    assert content_of(directory) == before


def test_included_secrets_are_copied_and_setup_is_part_of_the_start(directory: Path, tmp_path: Path) -> None:
    (directory / ".worktreeinclude").write_text("# secrets\n.env\nmain.py\n.envv\n!.env.production\n")
    command = [sys.executable, "-c", "open('made', 'w').close()"]
    worktree, note = create(directory, tmp_path, setup_command=command)
    assert (worktree.plan.path / ".env").read_text() == "KEY=1\n"
    assert "1 entry of .worktreeinclude (.env)" in note
    assert "1 entry of .worktreeinclude matches nothing to copy (.envv)" in note
    assert (worktree.plan.path / "made").exists()
    (worktree.plan.path / "build.log").write_text("again\n")  # ignored files do not count
    assert worktree.finish()[0].is_changed is False


def test_changes_of_a_copy_are_kept_listed_and_applied(directory: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    worktree, _ = create(directory, tmp_path)
    copy = worktree.plan.path
    (copy / "main.py").write_bytes(b"one\r\n2\n")
    (copy / "nested" / "new").write_bytes(b"\x00\xff")
    git(copy, "init", "--quiet")  # whatever the agent does with git there
    commit(copy)
    final, why = worktree.finish()
    assert (final.is_changed, "it has changed files" in (why or "")) == (True, True)
    (found,) = kept.list()
    assert (found.repository, found.base_commit, found.problem) == (str(directory), None, None)
    assert [(one.path, one.change, one.added) for one in found.changes] == [
        ("main.py", "modified", 1),
        ("nested/new", "created", None),
    ]
    applied = kept.apply(RUN)
    assert (applied.files, applied.is_merged) == (("main.py", "nested/new"), False)
    assert (directory / "main.py").read_bytes() == b"one\r\n2\n"
    assert (directory / "nested" / "new").read_bytes() == b"\x00\xff"
    with pytest.raises(AgentMuxError, match=r"do not fit .*amux worktrees diff"):
        kept.apply(RUN)


def test_removed_copy_leaves_its_patch(directory: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    worktree, _ = create(directory, tmp_path)
    (worktree.plan.path / "main.py").unlink()
    (worktree.plan.path / "locked").mkdir()
    (worktree.plan.path / "locked" / "file").touch()
    (worktree.plan.path / "locked").chmod(0o500)
    worktree.finish()
    removed = kept.clean(RUN)
    assert (kept.list(), list((tmp_path / "worktree-records").iterdir())) == ([], [])
    subprocess.run([GIT, "apply", removed.patch or ""], cwd=directory, check=True)
    assert not (directory / "main.py").exists()


def test_missing_source_is_reported_with_the_way_to_the_patch(
    directory: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    worktree, _ = create(directory, tmp_path)
    (worktree.plan.path / "main.py").write_text("changed\n")
    worktree.finish()
    directory.rename(tmp_path / "elsewhere")
    with pytest.raises(AgentMuxError, match=r"no longer exists; .*amux worktrees diff"):
        kept.apply(RUN)
    assert b"+changed" in kept.patch(RUN)


def test_kept_copy_can_be_copied_again(directory: Path, tmp_path: Path) -> None:
    worktree, _ = create(directory, tmp_path)
    wanted = RunOptions(agent="-", prompt="-", cwd=worktree.plan.path, isolation="worktree")
    second = worktree_of(plan_worktree(wanted, RUN[:-1] + "0", os.environ, tmp_path / "worktrees")[0], dict(os.environ))
    second.create(lambda: True)
    assert content_of(second.plan.path) == content_of(worktree.plan.path)
    for one in (second, worktree):
        assert one.finish()[0].is_changed is False


def test_large_directory_is_refused_and_leaves_nothing(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_copies, "MAX_FILES", 2)
    with pytest.raises(AgentMuxError, match=r"more than 2 files or 2 GiB to copy: use a smaller"):
        create(directory, tmp_path)
    assert [list((tmp_path / name).iterdir()) for name in ("worktrees", "worktree-records")] == [[], []]


def test_plan_in_a_repository_is_no_copy(repository: Path) -> None:
    assert plan(repository).base is not None
    assert type(worktree_of(plan(repository), {})) is RunWorktree
