"""The sandbox of the shell: commands may write in the workspace only, and have no network unless it is allowed.

It needs Linux with Landlock (5.13 or newer) and, without network, unprivileged user namespaces. It does not hide files:
commands can read what the user can. Nor does it forbid to connect to sockets in the file system, such as that of a
container service, or to change the permissions of the user's files.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from agent_loop.errors import ConfigurationError

SandboxMode = Literal["auto", "off", "required"]
PROBE_TIMEOUT = 20.0
"""Seconds for the check whether the kernel has what the sandbox needs."""
_PROGRAM = Path(__file__).with_name("sandbox_exec.py")


class ShellSandbox:
    """The sandbox of the commands of one conversation. `close` removes its temporary directory."""

    def __init__(self, mode: SandboxMode, writable: Sequence[Path], *, network: bool = False) -> None:
        """Create a sandbox.

        Args:
            mode: `auto`: where it is possible; `off`; `required`: it is an error if it is not possible.
            writable: The directories in which commands may write, beside a temporary one of their own (`TMPDIR`).
            network: Whether commands have network.
        """
        if mode not in get_args(SandboxMode):
            raise ConfigurationError(
                f"{mode!r} is no mode of the sandbox; use one of {', '.join(get_args(SandboxMode))}"
            )
        self._mode = mode
        self._writable = tuple(writable)
        self.network = network

    @cached_property
    def obstacle(self) -> str | None:
        """Why commands are not sandboxed, None if they are. Blocks once. Raises `ConfigurationError` if required."""
        if self._mode == "off":
            return "the sandbox is off"
        reason = self._probe()
        if reason is not None and self._mode == "required":
            raise ConfigurationError(f"commands cannot be sandboxed: {reason}; use --sandbox=auto or off")
        return reason

    @cached_property
    def temporary(self) -> Path:
        """The directory for temporary files of commands; created at the first use."""
        return Path(tempfile.mkdtemp(prefix="agent-loop-"))

    def wrap(self, argv: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the command in the sandbox, and variables to add to its environment. Blocks at the first call."""
        if self.obstacle is not None:
            return tuple(argv), {}
        variables = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(self.temporary))
        return (*self._prefix((*self._writable, self.temporary)), *argv), variables

    def describe(self) -> str:
        """Return what a model should know about the sandbox, empty if there is none."""
        if self.obstacle is not None:
            return ""
        network = "" if self.network else " They have no network except for connections between themselves."
        places = ", ".join(map(str, self._writable))
        return f"Commands run in a sandbox: they can write only in {places} and in $TMPDIR.{network}"

    def close(self) -> None:
        """Remove the temporary directory."""
        if "temporary" in self.__dict__:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def _prefix(self, writable: Sequence[Path]) -> tuple[str, ...]:
        spec = {"writable": [*map(str, writable)], "network": self.network}
        return sys.executable, "-I", "-S", str(_PROGRAM), json.dumps(spec)

    def _probe(self) -> str | None:
        if sys.platform != "linux":
            return "this needs Landlock, which only Linux has"
        try:
            done = subprocess.run(self._prefix(()), capture_output=True, timeout=PROBE_TIMEOUT, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return f"the check failed: {error}"
        if done.returncode == 0:
            return None
        message = done.stderr.decode("utf-8", "replace").strip().removeprefix("the sandbox cannot be set up: ")
        return message or f"the check failed with exit code {done.returncode}"
