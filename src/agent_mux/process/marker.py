"""Finding every process of a run, wherever it went.

A process group is not enough: the shells that claude, gemini, opencode, pi, copilot and hermes start live in sessions
of their own, and survive their agent. But they inherit its environment. Each run therefore puts a variable of its own
name there; children of a run inside a run carry both.

The reaper runs this module in an interpreter without site-packages: it imports the standard library only.
"""

import os
import signal
import tempfile
from pathlib import Path

PREFIX = "AGENT_MUX_RUN_"
ROUNDS = 50  # a process can fork while we look; each round sees what the one before missed
LOOKS_TO_BE_SURE = 2  # a process that is just replaced by a new program shows no environment for a moment
PROC = Path("/proc")


def marker_variable(run_id: str) -> str:
    """The name of the environment variable that marks the processes of a run."""
    return PREFIX + run_id


def temp_dir_of(run_id: str) -> Path:
    """Where the run's files for its agent go; nothing of it is left when the run is over."""
    return Path(tempfile.gettempdir()) / f"agent-mux-{run_id}"


def processes_of(run_id: str, proc: Path = PROC) -> list[int]:
    """Ids of the living processes that carry the run's marker. Empty where there is no /proc (macOS: see the docs)."""
    marker = marker_variable(run_id).encode() + b"="
    found = []
    for entry in _process_entries(proc):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # gone meanwhile, or somebody else's
        if environment.startswith(marker) or b"\0" + marker in environment:
            found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid() and not _is_dead(proc / str(pid))]


def kill_processes_of(run_id: str, number: int = signal.SIGKILL) -> int:
    """Send a signal to every process of the run; SIGKILL until none is left. Returns how many were signalled."""
    seen: set[int] = set()
    empty_looks = 0
    for _ in range(ROUNDS):
        alive = processes_of(run_id)
        for pid in alive:
            _signal(pid, number)
        seen.update(alive)
        empty_looks = 0 if alive else empty_looks + 1
        if number != signal.SIGKILL or empty_looks == LOOKS_TO_BE_SURE:
            break
    return len(seen)


def _process_entries(proc: Path) -> list[Path]:
    try:
        return [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _is_dead(entry: Path) -> bool:
    try:
        state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in {b"Z", b"X"}


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
