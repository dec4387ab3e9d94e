"""Directories of ours are closed to other users, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_loop.workspace.private import make_private_directory
from agent_mux._util.files import make_directory, write_text


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}


@pytest.mark.usefixtures("_no_umask")
def test_missing_parents_are_private_too(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b" / "c")
    make_private_directory(tmp_path / "d" / "e")
    write_text(tmp_path / "f" / "g" / "h.json", "{}")
    modes = _modes(tmp_path)
    assert modes.pop("f/g/h.json") == 0o600
    assert set(modes.values()) == {0o700}


@pytest.mark.usefixtures("_no_umask")
@pytest.mark.parametrize("variable", ["AGENT_MUX_CONFIG_DIR", "AGENT_MUX_CACHE_DIR"])
def test_open_directory_of_ours_is_closed(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o777)
    monkeypatch.setenv(variable, str(own))
    make_directory(own / "runs")
    assert _modes(tmp_path) == {"own": 0o700, "own/runs": 0o700}


@pytest.mark.usefixtures("_no_umask")
def test_other_directories_keep_their_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    make_directory(shared / "runs")
    assert _modes(tmp_path) == {"shared": 0o755, "shared/runs": 0o700}
