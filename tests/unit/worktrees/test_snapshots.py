"""Snapshots of a working tree."""

from pathlib import Path

from agent_mux.worktrees.repositories import GitDirectories
from agent_mux.worktrees.snapshots import WorkingTreeSnapshots

TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_equal_snapshots_are_not_compared_by_git(tmp_path: Path) -> None:
    found = GitDirectories(top=tmp_path, own=tmp_path / ".git", common=tmp_path / ".git")
    snapshots = WorkingTreeSnapshots(str(tmp_path / "no-git"), found, tmp_path / "store", {}, 5.0)
    assert snapshots.differences(TREE, TREE) == []
