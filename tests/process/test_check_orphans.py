"""A check ends with the process that runs it, also after `kill -9`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agent_mux.process.marker import identify

TIMEOUT = 120.0
CHECK = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
with open("ids.tmp", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("ids.tmp", "ids")
time.sleep(1000)
"""
PROGRAM = f"""
import os, sys
from collections.abc import Callable
from pathlib import Path
from agent_mux.compare.checks.definitions import CommandCheck
from agent_mux.compare.checks.running import run_checks
run_checks([CommandCheck(name="x", command=(sys.executable, "-c", {CHECK!r}))], Path(sys.argv[1]), os.environ)
"""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_check_and_its_daemon_end_with_the_client(tmp_path: Path) -> None:
    client = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], env=dict(os.environ))
    ids = tmp_path / "ids"
    try:
        wait_for(ids.exists, "the check has not started")
        processes = [identify(int(word)) for word in ids.read_text().split()]
        assert None not in processes
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait(TIMEOUT)
    wait_for(lambda: not any(identify(one.pid) == one for one in processes if one), "a process of the check is alive")
