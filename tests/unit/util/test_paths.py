"""The directories of our own files: search, override, and ownership."""

import os
from pathlib import Path

import pytest

from agent_mux._util import paths
from agent_mux._util.paths import config_dir, project_dir


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "work" / "repo" / "src").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("AGENT_MUX_CONFIG_DIR", "AGENT_MUX_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_environment_variable_overrides_the_global_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_dir() == home / ".agent-mux"
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", "~/elsewhere")
    assert config_dir() == home / "elsewhere"


def test_project_is_found_from_subdirectories(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = home / "work" / "repo"
    assert project_dir(repo / "src") is None
    (repo / ".agent-mux").mkdir()
    assert project_dir(repo / "src") == project_dir(str(repo)) == repo / ".agent-mux"
    assert project_dir(repo / "src" / "not" / "there") == repo / ".agent-mux"
    monkeypatch.chdir(repo / "src")
    assert project_dir() == repo / ".agent-mux"


def test_nearest_project_is_used(home: Path) -> None:
    for parent in (home / "work", home / "work" / "repo"):
        (parent / ".agent-mux").mkdir()
    assert project_dir(home / "work" / "repo" / "src") == home / "work" / "repo" / ".agent-mux"


def test_global_directory_is_not_a_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".agent-mux").mkdir()
    (home.parent / ".agent-mux").mkdir()
    assert project_dir(home / "work") is None
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(home / "elsewhere"))
    assert project_dir(home / "work") is None


def test_file_with_that_name_is_not_a_project(home: Path) -> None:
    (home / "work" / ".agent-mux").touch()
    assert project_dir(home / "work") is None


def test_search_creates_nothing(home: Path) -> None:
    before = sorted(home.rglob("*"))
    config_dir()
    project_dir(home / "work" / "repo")
    project_dir(named=home / "named")
    assert sorted(home.rglob("*")) == before


def test_named_project_overrides_the_search(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = home / "work" / "repo"
    assert project_dir(repo, named=home / "named") == home / "named"
    monkeypatch.setenv("AGENT_MUX_PROJECT_DIR", str(home / "other"))
    assert project_dir(repo) == home / "other"
    assert project_dir(repo, named=home / "named") == home / "named"
    (repo / ".agent-mux").mkdir()
    assert project_dir(named=repo) == project_dir(named=repo / ".agent-mux") == repo / ".agent-mux"


def test_project_directory_of_another_user_is_skipped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, mine = home / "work", home / "work" / "repo"
    (shared / ".agent-mux").mkdir()
    assert project_dir(mine) == shared / ".agent-mux"
    owned = shared.stat().st_uid
    monkeypatch.setattr(paths.os, "geteuid", lambda: owned + 1)
    monkeypatch.setattr(Path, "stat", _owned_by(Path.stat, {shared / ".agent-mux": owned + 7}))
    assert project_dir(mine) is None
    assert project_dir(mine, named=shared) == shared / ".agent-mux"


def test_owner_of_the_start_directory_is_trusted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = home / "work" / "repo"
    (repo / ".agent-mux").mkdir()
    monkeypatch.setattr(Path, "stat", _owned_by(Path.stat, {repo / ".agent-mux": 4711, repo: 4711}))
    assert project_dir(repo) == repo / ".agent-mux"


def _owned_by(stat: object, owners: dict[Path, int]) -> object:
    def stat_with_owner(path: Path, **options: object) -> os.stat_result:
        result = list(stat(path, **options))  # type: ignore[operator]
        result[4] = owners.get(path, result[4])
        return os.stat_result(result)

    return stat_with_owner


def test_impossible_start_directory_has_no_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project_dir("a\0b") is None
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_dir() is None
