"""A repository with a start that is frozen of it."""

import os
from pathlib import Path

import pytest
from tests.unit.worktrees.test_worktree import home, repository

from agent_mux.compare.frozen_start import FrozenStart, Workspace

__all__ = ["home", "repository"]


@pytest.fixture
def start(repository: Path, tmp_path: Path) -> FrozenStart:
    return FrozenStart.freeze(repository, tmp_path / "comparison", os.environ)


@pytest.fixture
def workspace(start: FrozenStart, tmp_path: Path) -> Workspace:
    return start.make_workspace(tmp_path / "workspaces" / "one")
