"""Workspaces of tasks: their files, the verdict of the hidden tests, and the oracle that applies the work directly."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from benchmarks.coding_tasks.steps import Change, Create, Look, Mistake, MultiChange, Run, Step, Task

HIDDEN = "test_hidden"
"""The module of the hidden tests, which is written after the run."""
LIMIT = 60.0
"""Seconds for the hidden tests, and for a command of the oracle."""
GIT, BASH = shutil.which("git") or "git", shutil.which("bash") or "bash"
IDENTITY = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.com")


def write_workspace(task: Task, directory: Path) -> None:
    """Write the files of a task to a new directory."""
    for name, content in task.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for name in task.executable:
        (directory / name).chmod(0o755)
    for name, target in (task.links or {}).items():
        (directory / name).symlink_to(target)


def commit_all(directory: Path) -> None:
    """Make the workspace a git repository with one commit."""
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=Start")):
        subprocess.run([GIT, *IDENTITY, *words], cwd=directory, check=True, timeout=LIMIT)


def environment() -> dict[str, str]:
    """Return the variables of commands. Bytecode is off: two edits within a second would leave a stale file."""
    path = f"/usr/local/bin:/usr/bin:/bin:{Path(sys.executable).parent}"
    return {"PATH": path, "HOME": os.devnull, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def failures_of(task: Task, directory: Path) -> str:
    """Run the hidden tests in a workspace. Return the end of their output, empty if they pass."""
    (directory / f"{HIDDEN}.py").write_text(task.hidden, "utf-8")
    command = [sys.executable, "-S", "-m", "unittest", "-q", HIDDEN]
    try:
        done = subprocess.run(
            command, cwd=directory, env=environment(), text=True, errors="replace", capture_output=True, timeout=LIMIT,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"the hidden tests did not end within {LIMIT:g} seconds"
    return "" if done.returncode == 0 else done.stderr[-1000:] or "the hidden tests failed without output"


# -- the oracle


def apply_work(task: Task, directory: Path) -> None:
    """Do the work of a task without a harness. Raise `AssertionError` if a step cannot work as it is written."""
    background: list[subprocess.Popen[bytes]] = []
    try:
        for answer in task.answers:
            for step in answer.steps:
                _apply(step, directory, background)
    finally:
        for process in background:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT)


def _apply(step: Step, directory: Path, background: list[subprocess.Popen[bytes]]) -> None:
    match step:
        case Change(name, old, new):
            _replace(directory, name, old, new)
        case MultiChange(name, changes):
            for old, new in changes:
                _replace(directory, name, old, new)
        case Create(name, content):
            path = directory / name.replace("{workspace}/", "")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode())
        case Look(name, shows=shows) if shows:
            assert shows.encode() in (directory / name.replace("{workspace}/", "")).read_bytes(), step
        case Mistake(_, inner):
            _apply(inner, directory, background)
        case Run(command, background=True):
            background.append(
                subprocess.Popen([BASH, "-c", command], cwd=directory, env=environment(), start_new_session=True)
            )
        case Run():
            output = _output_of(step, directory)
            assert step.shows in output, (step, output[-1000:])


def _output_of(step: Run, directory: Path) -> str:
    """Run a command within its time limit, with all its processes."""
    command = step.command.replace("{workspace}", str(directory))
    process = subprocess.Popen(
        [BASH, "-c", command], cwd=directory, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        return process.communicate(timeout=step.seconds or LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate(timeout=LIMIT)[0]


def _replace(directory: Path, name: str, old: str, new: str) -> None:
    path = directory / name.replace("{workspace}/", "")
    before = path.read_bytes()
    # An edit is written with LF; in a file with CRLF it means lines of that file.
    old_bytes, new_bytes = (_with_endings(text, before) for text in (old, new))
    assert before.count(old_bytes) == 1, f"{name} has {old!r} {before.count(old_bytes)} times"
    path.write_bytes(before.replace(old_bytes, new_bytes))


def _with_endings(text: str, file: bytes) -> bytes:
    content = text.encode()
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if b"\r\n" in file else content
