"""The repository of `amux demo`: made, looked at, tested and removed. Nothing of the user's counts in it.

Everything in it gets a home directory of its own and the environment of a run that inherits none, so neither the
settings of git and pytest nor those of agents change what the demo shows.
"""

import difflib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from agent_mux.run.plan import MINIMAL_ENVIRONMENT

FILES: Mapping[str, str] = {
    "calculator.py": '"""Sums."""\n\n\ndef add(a, b):\n    """The sum of both."""\n    return a - b\n',
    "test_calculator.py": "from calculator import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider\n",
}
"""With one bug. The ini file makes this the root for pytest, whatever lies in the directories above."""
TESTS = ("-B", "-m", "pytest", "-q")
"""Behind `python`: -B, as Python takes the bytecode of a file for new that has the same size and second."""
COMMAND_TIMEOUT = 60.0  # seconds for git, or for one test; a slow machine, not slow work
_PREFIX = "amux-demo-"
_INHERITED = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Without them, the Python in there could be another one than this."""
_GIT_COMMAND = (
    "git", "-c", "user.name=amux demo", "-c", "user.email=demo@example.invalid", "-c", "init.defaultBranch=main",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """What pytest said."""

    output: str
    exit_code: int | None
    """None: it did not end in time."""


@dataclass(frozen=True, slots=True)
class DemoRepository:
    """Where the agent works, and with what environment."""

    path: Path
    env: Mapping[str, str]
    """What comes to a minimal environment."""
    is_git: bool
    """False: git is not on this machine, or refuses to work."""

    def difference(self) -> str:
        """What changed since it was made, as a unified diff."""
        told = _run_git(self, "diff", "--no-color", "--no-ext-diff") if self.is_git else None
        return told if told is not None else "".join(self._compared())

    def _compared(self) -> Iterator[str]:
        for name, before in FILES.items():
            now = (self.path / name).read_text("utf-8", "replace") if (self.path / name).is_file() else ""
            lines = before.splitlines(keepends=True), now.splitlines(keepends=True)
            yield from difflib.unified_diff(*lines, f"a/{name}", f"b/{name}")

    def test(self) -> TestOutcome:
        """Run pytest in it, really."""
        try:
            done = _run_program(self, sys.executable, *TESTS)
        except subprocess.TimeoutExpired as error:
            said = error.output or b""
            return TestOutcome(said.decode("utf-8", "replace") if isinstance(said, bytes) else said, None)
        return TestOutcome(done.stdout, done.returncode)


@contextmanager
def make_repository(*, keep: bool) -> Iterator[DemoRepository]:
    """A repository with a failing test. It is removed behind the block, unless it is to be kept."""
    with TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as directory:
        root = Path(directory).resolve()
        path = Path(mkdtemp(prefix=_PREFIX)).resolve() if keep else root / "repository"
        path.mkdir(exist_ok=True)
        for name, text in FILES.items():
            (path / name).write_text(text, "utf-8")
        made = DemoRepository(path, _make_environment(root), is_git=True)
        yield made if _commit(made) else DemoRepository(path, made.env, is_git=False)


def _make_environment(root: Path) -> dict[str, str]:
    home = root / "home"
    home.mkdir()
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "HOME": str(home),
        "PATH": os.pathsep.join((*_python_directories(root / "bin"), os.environ.get("PATH", os.defpath))),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _python_directories(directory: Path) -> Iterator[str]:
    """Directories in which `python` is the interpreter that runs this: the one that has pytest."""
    beside = Path(sys.executable).parent
    python = beside / "python"
    if os.name == "posix" and not (python.exists() and python.samefile(sys.executable)):
        directory.mkdir()
        script = directory / "python"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "utf-8")
        script.chmod(0o700)
        yield str(directory)
    yield str(beside)


def _commit(made: DemoRepository) -> bool:
    steps = (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "A calculator with a bug"))
    return all(_run_git(made, *step) is not None for step in steps)


def _run_git(made: DemoRepository, *arguments: str) -> str | None:
    """What git says; None where there is none, or it fails."""
    try:
        done = _run_program(made, *_GIT_COMMAND, *arguments)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _run_program(made: DemoRepository, *command: str) -> subprocess.CompletedProcess[str]:
    """A program in the repository, to its end. Raises what `subprocess.run` does."""
    inherited = {name: os.environ[name] for name in MINIMAL_ENVIRONMENT if name in os.environ}
    return subprocess.run(
        command,
        cwd=made.path,
        env={**inherited, **made.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=COMMAND_TIMEOUT,
        check=False,
    )
