"""The installed command `amux` in an isolated environment, with the scripted agent as a third-party adapter."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

AMUX = Path(sys.executable).with_name("amux")
REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; allows for a slow machine, not for a slow command
ENTRY_POINT = "[agent_mux.adapters]\nscripted = scripted_agent:ADAPTER\n"
MODULE = """
import os
from tests.process.scripted import scripted_adapter
ADAPTER = scripted_adapter(os.environ.get("SCRIPTED", ""), two_way=os.environ.get("ONE_WAY") is None)
"""


def make_site(directory: Path) -> Path:
    """Create a folder that, on PYTHONPATH, is an installed package with the scripted agent's adapter."""
    metadata = directory / "scripted_agent-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "entry_points.txt").write_text(ENTRY_POINT)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-agent\nVersion: 1\n")
    (directory / "scripted_agent.py").write_text(MODULE)
    return directory


class Installed:
    """The installed command with its own home directory. `body` is the code of the scripted agent."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        self._path = f"{make_site(directory / 'site')}:{REPOSITORY}"

    def environment(self, body: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the complete environment; nothing is inherited from the test process."""
        return {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONPATH": self._path,
            "AGENT_MUX_CONFIG_DIR": str(self.home / "config"),
            "SCRIPTED": body,
            **(extra or {}),
        }

    def run(
        self, *arguments: object, body: str = "", stdin: bytes | None = None, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end. Standard input is a pipe if `stdin` is given, else /dev/null."""
        return subprocess.run(
            self.command(arguments),
            env=self.environment(body, extra),
            input=stdin.decode() if stdin is not None else None,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.home,
        )

    def start(self, *arguments: object, body: str = "", **extra: str) -> "subprocess.Popen[bytes]":
        """Start the command with output pipes that the test reads."""
        return subprocess.Popen(
            self.command(arguments),
            env=self.environment(body, extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.home,
            bufsize=0,
        )

    def terminal(self, *arguments: object, body: str = "", **extra: str) -> "Terminal":
        """Start the command at a terminal."""
        return Terminal(self.command(arguments), self.environment(body, extra), self.home)

    @staticmethod
    def command(arguments: Sequence[object]) -> list[str]:
        return [str(AMUX), *map(str, arguments)]


class Terminal:
    """A pseudo-terminal that runs `amux`: the test reads its screen and types keys."""

    def __init__(self, command: list[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._master, slave = pty.openpty()
        self.prepare(slave)
        self.screen = ""
        self._seen = 0
        self.process = subprocess.Popen(
            command, env=environment, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def prepare(self, terminal: int) -> None:
        """Prepare the terminal before the command starts."""

    def expect(self, text: str) -> str:
        """Wait until this text appears after previously expected text, and return the screen up to it."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.screen.find(text, self._seen)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} did not appear; the screen:\n{self.screen}")
        before, self._seen = self._seen, found + len(text)
        return self.screen[before : self._seen]

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self._master, text.encode())

    def finish(self) -> int:
        """Read to the end of the output and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(timeout=PATIENCE)

    def show(self, data: bytes) -> None:
        """Append output to the screen."""
        self.screen += data.decode("utf-8", "replace")

    def read(self) -> bool:
        """Wait for more output. Return False once the other end is closed."""
        return self._read(time.monotonic() + PATIENCE)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise AssertionError(f"no more output; the screen:\n{self.screen}")
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        self.show(data)
        return bool(data)
