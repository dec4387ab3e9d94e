"""A program that runs one background command and ends all its processes when its own standard input ends.

The agent holds the other end of that pipe, so the command ends with the agent, however the agent ends. Run as
`python -I -S command_keeper.py MARK GRACE LIMIT PROGRAM ARGUMENTS...`; output goes to its standard output, which is a
file. It exits with the exit code of the command, as shells do. It imports the standard library and its neighbour only.
"""

import importlib.util
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

CHECK_INTERVAL = 0.1
"""Seconds between two checks of the command and the size of its output."""
MAX_KILLS = 50


def keep(mark: str, grace: float, limit: int, argv: list[str]) -> int:
    """Run a command until it exits, its output exceeds `limit` bytes, or standard input ends. Return its exit code."""
    signal.signal(signal.SIGTERM, _raise_exit)
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True, close_fds=True
    )
    note = ""
    try:
        while child.poll() is None:
            readable, _, _ = select.select([0], [], [], CHECK_INTERVAL)
            if readable and not os.read(0, 4096):
                break
            if os.fstat(1).st_size > limit:
                note = f"\n[ended: the output exceeded {limit} bytes]\n"
                break
    finally:
        _end_all(child, mark, grace)
    os.write(1, note.encode())
    code = child.wait()
    return 128 - code if code < 0 else code


def _raise_exit(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _end_all(child: subprocess.Popen[bytes], mark: str, grace: float) -> None:
    """Send SIGTERM to all processes of the command, and SIGKILL to those alive after `grace` seconds."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    processes = _load_processes()
    started = processes.StartedCommand(child.pid, mark)
    processes.signal_processes(started, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        child.poll()
        if not processes.find_processes(started):
            return
        time.sleep(CHECK_INTERVAL / 4)
    for _ in range(MAX_KILLS):
        if not processes.signal_processes(started, signal.SIGKILL):
            return
        child.poll()
        time.sleep(CHECK_INTERVAL / 4)


def _load_processes() -> Any:
    """Import the module `processes` by its path: the package of the agent is not on the path of this program."""
    spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
    if spec is None or spec.loader is None:
        raise ImportError("processes.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    mark_, grace_, limit_, *argv_ = sys.argv[1:]
    sys.exit(keep(mark_, float(grace_), int(limit_), argv_))
