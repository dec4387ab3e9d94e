"""A PostgreSQL server of our own, thrown away afterwards. It refuses to run as root, so root lends it another user."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60.0  # seconds
USER = "postgres"
SETTINGS = {
    "fsync": "off",  # what survives a power failure is PostgreSQL's own business
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
}


def programs() -> Path | None:
    """Where `initdb` and `pg_ctl` are, of the newest version; None: PostgreSQL is not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which("pg_ctl")
    return None if found is None else Path(found).parent


@contextmanager
def started() -> Iterator["Cluster"]:
    """A server that runs, until the block is left. Skips the test where PostgreSQL is not installed."""
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    cluster = Cluster(binaries)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


class Cluster:
    """One server on a loopback port of its own. `url()` is that of a new, empty database."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._directory = Path(tempfile.mkdtemp(prefix="amux-postgres-"))
        self.data = self._directory / "data"
        self._databases = 0
        self.port = _free_port()
        self._identity: dict[str, Any] = {}
        """The user of the programs, as arguments of `subprocess.run`; empty for our own."""
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(self._directory, user.pw_uid, user.pw_gid)
            self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._run("initdb", "--pgdata", self.data, "--username", USER, "--auth", "trust", "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        """Until it answers."""
        settings = " ".join(f"-c {name}={value!r}" for name, value in {**SETTINGS, "port": str(self.port)}.items())
        log = self._directory / "log"
        self._run("pg_ctl", "start", "--wait", "--pgdata", self.data, "--log", log, "--options", settings)

    def stop(self, mode: str = "fast") -> None:
        """`fast`: connections are closed; `immediate`: as if it crashed."""
        self._run("pg_ctl", "stop", "--wait", "--pgdata", self.data, "--mode", mode)

    def freeze(self, *, frozen: bool) -> None:
        """Stop all its processes where they are, or let them go on: it is there, and does not answer."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            os.kill(pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def url(self) -> str:
        """Of a database that nobody used before."""
        self._databases += 1
        name = f"amux_{self._databases}"
        self._run("createdb", "--host", "127.0.0.1", "--port", self.port, "--username", USER, name)
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self._directory)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        # Not a pipe: the server inherits it, and would keep it open for as long as it lives.
        with (self._directory / "output").open("w+") as output:
            done = subprocess.run(
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=PATIENCE,
                check=False,
                **self._identity,
            )
            output.seek(0)
            assert done.returncode == 0, f"{command}: {output.read()}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
