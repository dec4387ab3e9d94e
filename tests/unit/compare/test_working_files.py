"""What a killed comparison leaves outside of its folder is found and removed; what others use stays."""

import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs
from tests.unit.compare.test_ledger import DONE, PLAN

from agent_mux.compare.ledger import COMPARISONS, ComparisonFolder, TrialEnded
from agent_mux.compare.store import Comparisons
from agent_mux.compare.working_files import WorkingFiles, remove_abandoned
from agent_mux.errors import AgentMuxError

KILLED = """
import os, sys, tempfile
from pathlib import Path
from agent_mux.compare.working_files import WorkingFiles
tempfile.tempdir = sys.argv[2]
files = WorkingFiles(Path(sys.argv[1]), "KILLED")
files.new_workspace().mkdir()
(files.temporary() / "left").write_text("left")
os._exit(1)
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Return the directory for temporary files of the killed process, which is not that of this process."""
    place = tmp_path / "temporary"
    place.mkdir()
    return place


def left(tmp_path: Path) -> list[str]:
    places = (tmp_path / "temporary", tmp_path / "config" / "workspaces")
    return sorted(path.name.rpartition("-")[0] for place in places for path in place.iterdir())


def kill(tmp_path: Path) -> Path:
    """Let a process leave files behind. Returns its global directory."""
    words = [sys.executable, "-c", KILLED, str(tmp_path / "config"), str(tmp_path / "temporary")]
    subprocess.run(words, check=False, timeout=120)
    assert left(tmp_path) == ["KILLED", "amux-KILLED"]
    return tmp_path / "config"


def make_folder(config: Path) -> ComparisonFolder:
    return ComparisonFolder.create(config / COMPARISONS / "KILLED", structs.replace(PLAN, id="KILLED"))


def test_next_process_of_the_comparison_removes_its_files(tmp_path: Path, temporary: Path) -> None:
    files = WorkingFiles(kill(tmp_path), "KILLED")
    files.remove()
    assert left(tmp_path) == []
    assert files.temporary().parent != temporary
    files.remove_temporary()


def test_next_start_of_another_comparison_removes_them(tmp_path: Path, temporary: Path) -> None:
    config = kill(tmp_path)
    make_folder(config).close()
    remove_abandoned(config)
    assert left(tmp_path) == []


def test_files_of_an_active_comparison_stay(tmp_path: Path, temporary: Path) -> None:
    config = kill(tmp_path)
    folder = make_folder(config)
    remove_abandoned(config)
    assert left(tmp_path) == ["KILLED", "amux-KILLED"]
    with pytest.raises(AgentMuxError, match="is active"):
        Comparisons(config).remove("KILLED")
    folder.close()


def test_workspaces_that_are_kept_on_request_stay(tmp_path: Path, temporary: Path) -> None:
    config = kill(tmp_path)
    (workspace,) = (config / "workspaces").iterdir()
    folder = make_folder(config)
    folder.open_ledger()
    folder.append(TrialEnded(at=1, trial=structs.replace(DONE, workspace=str(workspace))))
    folder.close()
    remove_abandoned(config)
    assert left(tmp_path) == ["KILLED"]
    Comparisons(config).remove("KILLED")
    assert left(tmp_path) == []


def test_removed_comparison_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    config = kill(tmp_path)
    make_folder(config).close()
    Comparisons(config).remove("KILLED")
    assert left(tmp_path) == []
    assert list((config / COMPARISONS).iterdir()) == []


KILLED_APPLYING = """
import os, sys, tempfile
from pathlib import Path
from agent_mux.compare.working_files import WorkingFiles
tempfile.tempdir = sys.argv[2]
with WorkingFiles(Path(sys.argv[1]), "KILLED").applying() as path:
    (path / "left").write_text("left")
    os._exit(1)
"""


def kill_applying(tmp_path: Path) -> Path:
    """Let a process that applies a trial leave files behind. Returns its global directory."""
    config = tmp_path / "config"
    make_folder(config).close()
    words = [sys.executable, "-c", KILLED_APPLYING, str(config), str(tmp_path / "temporary")]
    subprocess.run(words, check=False, timeout=120)
    assert [path.name for path in (tmp_path / "temporary").glob("*/*")] == ["left"]
    return config


def test_next_start_removes_the_files_of_a_killed_apply(tmp_path: Path, temporary: Path) -> None:
    config = kill_applying(tmp_path)
    remove_abandoned(config)
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in (config / COMPARISONS / "KILLED").iterdir()) == ["in-use", "plan.json"]


def test_removed_comparison_leaves_no_files_of_a_killed_apply(tmp_path: Path, temporary: Path) -> None:
    Comparisons(kill_applying(tmp_path)).remove("KILLED")
    assert list(temporary.iterdir()) == []


def test_comparisons_that_are_removed_meanwhile_are_no_problem(tmp_path: Path) -> None:
    folders = tmp_path / COMPARISONS
    is_over = threading.Event()

    def create_and_remove() -> None:
        while not is_over.is_set():
            for number in range(20):
                (folders / str(number)).mkdir(parents=True, exist_ok=True)
            shutil.rmtree(folders)

    with ThreadPoolExecutor(1) as pool:
        removing = pool.submit(create_and_remove)
        try:
            for _ in range(1000):
                remove_abandoned(tmp_path)
        finally:
            is_over.set()
        removing.result(60)


def test_comparison_that_is_being_applied_keeps_its_files(tmp_path: Path) -> None:
    config = tmp_path / "config"
    make_folder(config).close()
    with WorkingFiles(config, "KILLED").applying() as path:
        remove_abandoned(config)
        assert path.is_dir()
        with pytest.raises(AgentMuxError, match="is being applied; wait"):
            Comparisons(config).remove("KILLED")
    assert not path.exists()
    assert WorkingFiles(config, "KILLED").is_applying is False
    Comparisons(config).remove("KILLED")


def test_link_to_a_foreign_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    folder = tmp_path / "config" / COMPARISONS / "X"
    folder.mkdir(parents=True)
    (folder / "temporary").symlink_to(tmp_path / "precious")
    WorkingFiles(tmp_path / "config", "X").remove()
    assert (tmp_path / "precious").is_dir()
    assert not (folder / "temporary").is_symlink()
