"""An isolated agent sees its workspace and nothing that could show it a solution; supervision is as without it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.worktrees.test_worktree import git

from agent_mux.compare import hide_places
from agent_mux.compare.isolation import Isolation, places_to_hide
from agent_mux.errors import AgentMuxError, ValidationError

TIMEOUT = 60.0


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Return a hidden directory with a secret, and a workspace in it."""
    hidden = tmp_path / "hidden"
    workspace = hidden / "w"
    workspace.mkdir(parents=True)
    (hidden / "secret").write_text("the fix\n")
    (workspace / "mine").write_text("mine\n")
    return hidden, workspace


@pytest.fixture
def isolation(places: tuple[Path, Path]) -> Isolation:
    found = Isolation("auto", [places[0]], [Path(sys.executable)])
    if not found.is_available():
        pytest.skip(str(found.reason))
    return found


def start(isolation: Isolation, workspace: Path, *argv: str) -> subprocess.Popen[str]:
    prefix = isolation.prefix_for(workspace, workspace)
    return subprocess.Popen(
        [*prefix, *argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def output_of(isolation: Isolation, workspace: Path, script: str) -> str:
    return start(isolation, workspace, "sh", "-c", script).communicate(timeout=TIMEOUT)[0]


def test_workspace_is_usable_and_the_rest_is_hidden(isolation: Isolation, places: tuple[Path, Path]) -> None:
    hidden, workspace = places
    printed = output_of(isolation, workspace, f"pwd; cat mine; echo new > new; ls -A {hidden}; cat ../secret")
    assert printed.splitlines()[:3] == [str(workspace), "mine", "w"]
    assert "the fix" not in printed
    assert (workspace / "new").read_text() == "new\n"
    assert (hidden / "secret").read_text() == "the fix\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "umount {0}; cat {0}/secret",
        "unshare -Urm sh -c 'umount {0}; cat {0}/secret'",
        "cat /proc/$PPID/root{0}/secret",
        "cat /proc/{1}/cwd/secret /proc/{1}/root{0}/secret",
        "nsenter -t {1} -m cat {0}/secret",
        "touch {0}/secret; echo replaced > {0}/secret",
    ],
)
def test_hidden_places_cannot_be_reached(attempt: str, isolation: Isolation, places: tuple[Path, Path]) -> None:
    hidden, workspace = places
    printed = output_of(isolation, workspace, attempt.format(hidden, os.getpid()))
    assert "the fix" not in printed
    assert (hidden / "secret").read_text() == "the fix\n"


def test_agent_is_the_process_that_was_started(isolation: Isolation, places: tuple[Path, Path]) -> None:
    child = start(isolation, places[1], "sh", "-c", "echo $$; ps -o pgid= -p $$ 2>/dev/null || true; exit 7")
    assert child.communicate(timeout=TIMEOUT)[0].split()[0] == str(child.pid)
    assert child.returncode == 7


def test_signals_reach_the_agent_and_nothing_stays_mounted(isolation: Isolation, places: tuple[Path, Path]) -> None:
    quiet = "exec 2>/dev/null"  # a shell reports that its `sleep` was terminated
    script = f"{quiet}; trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    child = start(isolation, places[1], "sh", "-c", script)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    assert str(places[0]) not in Path("/proc/self/mountinfo").read_text()
    os.killpg(child.pid, 15)
    assert child.communicate(timeout=TIMEOUT)[0] == "ended\n"
    assert child.returncode == 3


def test_killed_agent_leaves_nothing(isolation: Isolation, places: tuple[Path, Path]) -> None:
    child = start(isolation, places[1], "sh", "-c", "sleep 600 & echo $!; wait")
    assert child.stdout is not None
    inner = int(child.stdout.readline())
    os.killpg(child.pid, 9)
    child.communicate(timeout=TIMEOUT)
    assert child.returncode == -9
    deadline = time.monotonic() + TIMEOUT
    while Path(f"/proc/{inner}/root").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{inner}/root").exists()


def test_missing_program_is_reported(isolation: Isolation, places: tuple[Path, Path]) -> None:
    child = start(isolation, places[1], "/no/such/program")
    assert "/no/such/program: No such file" in child.communicate(timeout=TIMEOUT)[0]
    assert child.returncode == 127


def test_source_with_what_agents_need_is_not_isolated(tmp_path: Path) -> None:
    isolation = Isolation("auto", [tmp_path], [tmp_path / "home"])
    assert isolation.is_available() is False
    assert isolation.reason == f"agents need {tmp_path / 'home'}, which is in {tmp_path}"
    assert isolation.prefix_for(tmp_path / "w", tmp_path / "w") == ()


def test_required_isolation_is_an_error_if_impossible(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match=r"cannot be isolated: agents need .*; use isolation=auto or off"):
        Isolation("required", [tmp_path], [tmp_path]).is_available()


def test_isolation_can_be_off(tmp_path: Path) -> None:
    assert Isolation("off", [tmp_path], []).reason == "isolation is off"
    with pytest.raises(ValidationError):
        Isolation("maybe", [], [])  # type: ignore[arg-type]


def test_repositories_of_the_source_are_hidden(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "side"))
    folder = tmp_path / "comparisons" / "one"
    places = places_to_hide(folder, tmp_path / "workspaces", tmp_path / "side")
    assert {folder.parent, tmp_path / "workspaces", tmp_path / "side", repository / ".git"} <= set(places)
    other = Isolation("off", places_to_hide(folder, tmp_path / "workspaces", repository), [])
    assert set(other.hidden) == {folder.parent, tmp_path / "workspaces", repository, tmp_path / "side"}


def test_hidden_file_is_empty(tmp_path: Path) -> None:
    solution, other = tmp_path / "gold.patch", tmp_path / "other"
    solution.write_text("the fix\n")
    other.write_text("other\n")
    isolation = Isolation("auto", [solution], [Path(sys.executable)])
    if not isolation.is_available():
        pytest.skip(str(isolation.reason))
    printed = output_of(isolation, tmp_path, f"cat {other} {solution}; echo replaced > {solution}")
    assert printed.splitlines()[0] == "other"
    assert "the fix" not in printed
    assert solution.read_text() == "the fix\n"


def test_program_before_each_trial_imports_no_slow_modules() -> None:
    words = [sys.executable, "-I", "-S", "-X", "importtime", str(hide_places.__file__), "--cwd=/", "--", "true"]
    imported = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stderr
    assert "ctypes" in imported
    assert not [name for name in ("json", "pathlib", "urllib") if f" {name}\n" in imported]
