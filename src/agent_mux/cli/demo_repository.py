"""The temporary repository of `amux demo`.

Every program in it gets a separate home directory and a minimal environment, so that neither the user's git
settings nor those of agents change the result.
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

from agent_mux.run.environment import MINIMAL_ENVIRONMENT

FILES: Mapping[str, str] = {
    "calculator.py": '"""Sums."""\n\n\ndef add(a, b):\n    """The sum of both."""\n    return a - b\n',
    "test_calculator.py": (
        "from unittest import TestCase\n\nfrom calculator import add\n\n\n"
        "class AddTest(TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}
"""The files, with one bug."""
TESTS = ("-B", "-m", "unittest")
"""Arguments of `python`. -B, because Python reuses bytecode of a file with the same size and modification second."""
COMMAND_TIMEOUT = 60.0  # seconds for one git command or test run; generous, for slow machines
_PREFIX = "amux-demo-"
_INHERITED = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables without which `python` could start another interpreter than the current one."""
_GIT_COMMAND = (
    "git", "-c", "user.name=amux demo", "-c", "user.email=demo@example.invalid", "-c", "init.defaultBranch=main",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """The output and exit code of the tests."""

    output: str
    exit_code: int | None
    """The exit code; None after a timeout."""


@dataclass(frozen=True, slots=True)
class DemoRepository:
    """The directory in which the agent works, and its environment."""

    path: Path
    env: Mapping[str, str]
    """Variables added to a minimal environment."""
    is_git: bool
    """Whether git is installed and works."""

    def difference(self) -> str:
        """Return the changes since the creation as a unified diff."""
        diff = _run_git(self, "diff", "--no-color", "--no-ext-diff") if self.is_git else None
        return diff if diff is not None else "".join(self._compared())

    def _compared(self) -> Iterator[str]:
        for name, before in FILES.items():
            now = (self.path / name).read_text("utf-8", "replace") if (self.path / name).is_file() else ""
            lines = before.splitlines(keepends=True), now.splitlines(keepends=True)
            yield from difflib.unified_diff(*lines, f"a/{name}", f"b/{name}")

    def test(self) -> TestOutcome:
        """Run the tests in the repository."""
        try:
            done = _run_program(self, sys.executable, *TESTS)
        except subprocess.TimeoutExpired as error:
            output = error.output or b""
            return TestOutcome(output.decode("utf-8", "replace") if isinstance(output, bytes) else output, None)
        return TestOutcome(done.stdout, done.returncode)


@contextmanager
def make_repository(*, keep: bool) -> Iterator[DemoRepository]:
    """Create a repository with a failing test; remove it at the end of the block unless `keep` is true."""
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
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _python_directories(directory: Path) -> Iterator[str]:
    """Yield directories in which `python` is the current interpreter."""
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
    """Return the output of git; None if git is missing or fails."""
    try:
        done = _run_program(made, *_GIT_COMMAND, *arguments)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _run_program(made: DemoRepository, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the repository and wait for it. Raise what `subprocess.run` raises."""
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
