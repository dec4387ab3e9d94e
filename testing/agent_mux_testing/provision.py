"""Installation of real CLIs for tests at their recorded versions: `python -m agent_mux_testing.provision AGENT`.

They are installed in `${AMUX_AGENT_CACHE:-~/.cache/agent-mux/agents}/<agent>-<version>/`, outside of the repository and
of the user's own installations. A second call does nothing; concurrent calls wait for each other.
"""

import argparse
import contextlib
import fcntl
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux_testing.live.kit import Pin
from agent_mux_testing.live.kits import cache_directory, kits, pin_of

__all__ = [
    "ACPX", "SYSTEM_PATH", "TOOLS", "Provisioned", "cache_directory", "find_agent", "find_tool", "provision",
    "provision_tool",
]  # fmt: skip

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
COMPLETE_MARKER = ".agent-mux-whole"  # the file that marks a complete installation
INSTALL_TIMEOUT = 1800.0  # hundreds of megabytes over a slow line
LOCK_TIMEOUT = INSTALL_TIMEOUT + 60.0  # waiting for one installation of another process
LOCK_POLL = 0.2
VERSION_TIMEOUT = 60.0  # a cold start from a slow disk

ACPX = "acpx"
"""A client of the Agent Client Protocol, which drives `amux acp`."""
TIME_SERVER = "mcp-server-time"
"""A published MCP server."""
TOOLS: Mapping[str, Pin] = {
    "node-24": Pin(
        version="24.21.0",
        npm=("node-{os}-{arch}@24.21.0",),
        program="node_modules/node-*/bin/node",
        path=("node_modules/node-*/bin",),
    ),
    "ripgrep": Pin(
        version="1.18.0",
        npm=("@vscode/ripgrep-{os}-{arch}@1.18.0",),
        program="node_modules/@vscode/ripgrep-*/bin/rg",
        path=("node_modules/@vscode/ripgrep-*/bin",),
    ),
    ACPX: Pin(version="0.19.1", npm=("acpx@0.19.1",), program="node_modules/acpx/dist/cli.js", needs=("node-24",)),
    TIME_SERVER: Pin(version="2026.10.19", pip="mcp-server-time==2026.10.19", program="bin/mcp-server-time"),
}
"""Tools that some agents need on PATH and a machine may lack, clients of agents, and an MCP server."""
PARTNERS = (ACPX, TIME_SERVER)
"""The programs with which agents are tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """A CLI that is installed in the cache."""

    agent: str
    version: str
    program: Path
    path: str
    """The PATH for it: its own directories, those of the tools that it needs, and those of the system."""


def find_agent(agent: str, version: str | None = None, cache: Path | None = None) -> Provisioned | None:
    """Return a provisioned agent; None when it or a tool that it needs is missing. Install and start nothing."""
    return _found(agent, pin_of(agent, version), cache or cache_directory())


def find_tool(name: str, cache: Path | None = None) -> Provisioned | None:
    """Return one of `TOOLS` when it is provisioned, else None."""
    return _found(name, TOOLS[name], cache or cache_directory())


def provision_tool(name: str, cache: Path | None = None) -> Provisioned:
    """Install one of `TOOLS` unless it is provisioned. Raise errors as `provision` does."""
    root = cache or cache_directory()
    for tool in (*TOOLS[name].needs, name):
        _provide(tool, TOOLS[tool], root)
    found = find_tool(name, root)
    if found is None:
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{name} was installed in {root}, but its program is missing")
    return found


def _found(agent: str, pin: Pin, root: Path) -> Provisioned | None:
    folder = _folder(agent, pin, root)
    program = _program(pin, folder)
    needed = [(TOOLS[name], _folder(name, TOOLS[name], root)) for name in pin.needs]
    if program is None or any(_program(*tool) is None for tool in needed):
        return None
    directories = [str(path) for installed in ((pin, folder), *needed) for path in _path_directories(*installed)]
    return Provisioned(agent=agent, version=pin.version, program=program, path=":".join([*directories, SYSTEM_PATH]))


def provision(agent: str, version: str | None = None, cache: Path | None = None) -> Provisioned:
    """Install a pinned agent and the tools that it needs unless they are provisioned, and check its version.

    Raise `AgentMuxError` when it is not pinned, npm or pip are missing or fail, or the version is not the pinned one.
    """
    pin, root = pin_of(agent, version), cache or cache_directory()
    for name in pin.needs:
        _provide(name, TOOLS[name], root)
    is_new = _provide(agent, pin, root)
    found = find_agent(agent, pin.version, root)
    folder = _folder(agent, pin, root)
    if found is None:
        raise AgentMuxError(
            "AGENT_NOT_INSTALLED", f"{agent} {pin.version} was installed in {folder}, but its program is missing"
        )
    printed = _printed_version(found)
    if not re.search(rf"(?<![\d.]){re.escape(pin.version)}(?!\d|\.\d)", printed):
        if is_new:
            shutil.rmtree(folder)
        message = f"{found.program} has the version {printed!r}, not {pin.version}; remove {folder} and try again"
        raise AgentMuxError("AGENT_NOT_INSTALLED", message)
    return found


def _provide(name: str, pin: Pin, root: Path) -> bool:
    """Install the program unless it is there. Return whether it was installed now."""
    root.mkdir(parents=True, exist_ok=True)
    folder = _folder(name, pin, root)
    with _locked(folder.with_name(f"{folder.name}.lock")):
        is_missing = _program(pin, folder) is None
        if is_missing:
            _install(name, pin, folder)
        return is_missing


def _folder(name: str, pin: Pin, root: Path) -> Path:
    return root / (name if name in TOOLS else f"{name}-{pin.version}")


def _program(pin: Pin, folder: Path) -> Path | None:
    if not (folder / COMPLETE_MARKER).exists():
        return None
    program = next((path for path in sorted(folder.glob(pin.program)) if path.is_file()), None)
    if program is not None and pin.script is not None and program.read_bytes() != pin.script.encode():
        return None  # written by another checkout
    return program


def _path_directories(pin: Pin, folder: Path) -> list[Path]:
    return [path for pattern in pin.path for path in sorted(folder.glob(pattern))]


def _install(name: str, pin: Pin, folder: Path) -> None:
    """Install in the final folder: a virtual environment cannot be moved. The marker is written last."""
    shutil.rmtree(folder, ignore_errors=True)
    if pin.npm:
        _npm(name, pin, folder)
    if pin.pip is not None:
        _pip(name, pin.pip, folder)
    if pin.script is not None:
        _write(folder / pin.program, pin.script)
    (folder / COMPLETE_MARKER).touch()
    if _program(pin, folder) is None:
        (folder / COMPLETE_MARKER).unlink()
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{folder} has no {pin.program}; has the package changed?")


def _write(program: Path, script: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(script, "utf-8")
    program.chmod(0o755)


def _npm(name: str, pin: Pin, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        message = f"installing {name} {pin.version} needs npm, which is not on PATH; install Node.js 20 or newer"
        raise AgentMuxError("AGENT_NOT_INSTALLED", message)
    packages = [package.format(os=_npm_os(), arch=_npm_architecture()) for package in pin.npm]
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={folder}", *packages]
    _run(command, f"npm could not install {' '.join(packages)}")


def _pip(name: str, requirement: str, folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)], f"no virtual environment for {name}")
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement]
    _run(command, f"pip could not install {requirement}")


def _run(command: Sequence[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    if done.returncode != 0:
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{failure}: {_tail(done.stderr)}")


def _printed_version(found: Provisioned) -> str:
    """Return the output of `--version`, run with an empty home directory."""
    with tempfile.TemporaryDirectory(prefix="agent-mux-version-") as home:
        environment = {"HOME": home, "PATH": found.path, "LANG": "C.UTF-8"}
        command = [str(found.program), "--version"]
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
    """Hold a lock on the file; the kernel releases it when this process ends."""
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
    """Provision the agents on the command line, or everything, and print one line for each. Return the exit code."""
    everything = [f"{kit.agent}@{pin.version}" for kit in kits().values() for pin in kit.pins]
    everything += PARTNERS
    parser = argparse.ArgumentParser(prog="agent_mux_testing.provision", description="Pinned CLIs for tests.")
    parser.add_argument("agents", nargs="*", metavar="AGENT[@VERSION]", help=f"default: {' '.join(everything)}")
    for named in parser.parse_args().agents or everything:
        agent, _, version = named.partition("@")
        try:
            found = provision_tool(agent) if agent in TOOLS else provision(agent, version or None)
        except (AgentMuxError, OSError, subprocess.TimeoutExpired) as error:
            sys.stderr.write(f"error: {named}: {error}\n")
            return 1
        sys.stdout.write(f"{agent} {found.version} {found.program}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
