"""The installed command `amux` in an isolated environment, with the scripted agent as a third-party adapter."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.pseudo_terminal import PATIENCE, PseudoTerminal

AMUX = Path(sys.executable).with_name("amux")
REPOSITORY = Path(__file__).parents[2]
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

    def terminal(self, *arguments: object, body: str = "", **extra: str) -> PseudoTerminal:
        """Start the command at a terminal."""
        return PseudoTerminal(self.command(arguments), self.environment(body, extra), self.home)

    @staticmethod
    def command(arguments: Sequence[object]) -> list[str]:
        return [str(AMUX), *map(str, arguments)]
