"""Real CLIs for tests, each at the version its recordings are of: `python -m agent_mux.testing.provision claude codex`.

They go to `${AMUX_AGENT_CACHE:-~/.cache/agent-mux/agents}/<agent>-<version>/`, never into the repository, and never
touch what the user has installed. Doing it twice does nothing; two at once wait for each other.
"""

import argparse
import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError

__all__ = ["PINNED", "PinnedAgent", "cache_directory", "find_agent", "provision"]

INSTALL_TIMEOUT = 1800.0  # hundreds of megabytes over a slow line
LOCK_TIMEOUT = INSTALL_TIMEOUT + 60.0  # whoever waits, waits for one installation
LOCK_POLL = 0.2
VERSION_TIMEOUT = 30.0  # a cold start from a slow disk


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedAgent:
    """One CLI at one version."""

    agent: str
    version: str
    package: str
    """What npm installs; `{os}` and `{arch}` are npm's names for this machine."""
    program: str
    """Glob below `node_modules` of the native program itself, never of a launcher: signals must reach it."""

    @property
    def directory(self) -> str:
        """Its folder in the cache."""
        return f"{self.agent}-{self.version}"


PINNED: Mapping[str, PinnedAgent] = {
    pinned.agent: pinned
    for pinned in (
        # The package named without a platform installs an old version, silently, where Node is older than it wants.
        PinnedAgent(
            agent="claude",
            version="2.1.330",
            package="@anthropic-ai/claude-code-{os}-{arch}@2.1.330",
            program="@anthropic-ai/claude-code-*/claude",
        ),
        PinnedAgent(
            agent="codex",
            version="0.169.0",
            package="@openai/codex@0.169.0-{os}-{arch}",
            program="@openai/codex/vendor/*/bin/codex",
        ),
    )
}


def cache_directory() -> Path:
    """Where provisioned CLIs live."""
    chosen = os.environ.get("AMUX_AGENT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "agent-mux" / "agents"


def find_agent(agent: str, cache: Path | None = None) -> Path | None:
    """The program of a provisioned agent; None when it is not there yet. Installs nothing, starts nothing."""
    pinned = PINNED[agent]
    return _program(pinned, (cache or cache_directory()) / pinned.directory)


def provision(agent: str, cache: Path | None = None) -> Path:
    """Make sure the pinned agent is there, and is what it should be. Returns its program.

    Raises `AgentMuxError` when it is not pinned, npm is missing or fails, or the version is not the pinned one.
    """
    if agent not in PINNED:
        raise AgentMuxError("AGENT_NOT_FOUND", f"{agent!r} is not pinned; known: {', '.join(PINNED)}")
    pinned, root = PINNED[agent], cache or cache_directory()
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / f"{pinned.directory}.lock"):
        folder = root / pinned.directory
        if _program(pinned, folder) is None:
            _install(pinned, folder)
        return _checked(pinned, folder)


def _program(pinned: PinnedAgent, folder: Path) -> Path | None:
    return next((path for path in sorted((folder / "node_modules").glob(pinned.program)) if path.is_file()), None)


def _install(pinned: PinnedAgent, folder: Path) -> None:
    """Install beside the folder and move it there when it is whole: a broken installation is never found."""
    npm = shutil.which("npm")
    if npm is None:
        what = (
            f"installing {pinned.agent} {pinned.version} needs npm, which is not on PATH; install Node.js 20 or newer"
        )
        raise AgentMuxError("AGENT_NOT_INSTALLED", what)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    package = pinned.package.format(os=_npm_os(), arch=_npm_architecture())
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={partial}", package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    if done.returncode != 0:
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"npm could not install {package}: {_tail(done.stderr)}")
    _checked(pinned, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _checked(pinned: PinnedAgent, folder: Path) -> Path:
    """The program, having said the pinned version."""
    program = _program(pinned, folder)
    if program is None:
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{folder} holds no {pinned.program}; remove it and try again")
    said = _version(program)
    if pinned.version not in said.split():
        what = f"{program} says it is {said!r}, not {pinned.version}; remove {folder} and try again"
        raise AgentMuxError("AGENT_NOT_INSTALLED", what)
    return program


def _version(program: Path) -> str:
    """What `--version` prints, asked in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="agent-mux-version-") as home:
        environment = {"HOME": home, "PATH": os.defpath, "LANG": "C.UTF-8"}
        command = [str(program), "--version"]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=VERSION_TIMEOUT, check=False
        )
    return done.stdout.strip() or _tail(done.stderr)


def _npm_os() -> str:
    return platform.system().lower()


def _npm_architecture() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)


def _tail(text: str) -> str:
    return text.strip()[-500:] or "(no output)"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the kernel lets go of it when we die."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise AgentMuxError("TIMEOUT", f"another installation still holds {path}") from None
                time.sleep(LOCK_POLL)
        yield


def main() -> int:
    """Provision what is named, or everything; prints one line each."""
    parser = argparse.ArgumentParser(prog="agent_mux.testing.provision", description="Pinned CLIs for tests.")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"default: {' '.join(PINNED)}")
    for agent in parser.parse_args().agents or list(PINNED):
        try:
            program = provision(agent)
        except (AgentMuxError, OSError, subprocess.TimeoutExpired) as error:
            sys.stderr.write(f"error: {agent}: {error}\n")
            return 1
        sys.stdout.write(f"{agent} {PINNED[agent].version} {program}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
