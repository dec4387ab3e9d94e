"""`amux serve` and other commands as processes."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 180.0  # seconds; the start of a service takes a minute beside many other processes


def environment(directory: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Nothing of ours but where the code is."""
    own = {"PATH": os.defpath, "HOME": str(directory), "LANG": "C.UTF-8"}
    return {**own, "PYTHONPATH": os.pathsep.join(sys.path), "AGENT_MUX_CONFIG_DIR": str(directory), **extra}


def command(words: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", "agent_mux.cli.main", *map(str, words)]


def amux(directory: Path, *words: object, **extra: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        command(words),
        env=environment(directory, extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=directory,
    )


class Served:
    """`amux serve --json`, listening."""

    def __init__(self, process: "subprocess.Popen[str]", told: dict[str, Any]) -> None:
        self.process = process
        self.told = told
        self.url: str = told["url"]

    def stop(self, sign: int = signal.SIGTERM) -> tuple[int, str]:
        """A signal; gives the exit code, and what is on standard error."""
        self.process.send_signal(sign)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@contextmanager
def serve(directory: Path, *words: object, **extra: str) -> Iterator[Served]:
    """On a free port, until the block is left."""
    process = subprocess.Popen(
        command(["serve", "--json", "--port", "0", *words]),
        env=environment(directory, extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    try:
        yield Served(process, _first_line(process)["data"])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def _first_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE
    ready, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0))
    assert ready, "the server said nothing"
    line = process.stdout.readline()
    assert line, process.communicate(timeout=PATIENCE)[1]
    told = json.loads(line)
    assert told["ok"], told
    return dict(told)
