"""Cases that kill a client outright, and count what survives it."""

import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio

from agent_mux.contract import ContractChecker
from agent_mux.events import TextDeltaEvent
from agent_mux.process.marker import PREFIX
from agent_mux.run.derive import derive_events
from agent_mux.run.journal import JournalReader
from agent_mux.testing.torture import census
from agent_mux.testing.torture.adapter import TortureCodec
from agent_mux.testing.torture.case import Circumstances, Outcome

SEED = 20261122
LATEST = 1.2  # seconds after the first runs began until the client is killed, at most
SURVIVAL = 10.0  # seconds until a survivor counts as one
LONGEST_RECORD = 1 << 17  # bytes: what a chunk of output and its head can be
VARIABLE = "AGENT_MUX_TORTURE"  # with the token, for the processes that only inherit: client and reaper


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledClient:
    """A client is killed (SIGKILL) at random points; the size is how often."""

    name: str
    meaning: str
    kind: str
    """Of `client.KINDS`."""
    sizes: tuple[int, int]
    bound: float = 400.0
    at_terminal: bool = False
    """It is, besides the pipes, in every repetition."""

    async def play(self, circumstances: Circumstances) -> Outcome:
        """Kill as many clients."""
        chance = random.Random(SEED)  # noqa: S311  # the same points every time, as far as a machine can
        findings: list[str] = []
        slowest = 0.0
        for number in range(circumstances.size):
            delay = chance.uniform(0, LATEST)
            found, settle = await _repetition(self.kind, delay, circumstances.backend)
            findings += [f"killed {delay:.3f} s after its start (repetition {number}): {what}" for what in found]
            slowest = max(slowest, settle)
        return Outcome(verdict="killed", findings=tuple(findings), settle=slowest)


async def _repetition(kind: str, delay: float, backend: str) -> tuple[list[str], float]:
    token = f"torture-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as temporary:
        client = _start(kind, place, token, backend, temporary)
        try:
            await _ready(client)
            await anyio.sleep(delay)
            client.send_signal(signal.SIGKILL)
            client.wait()
            settle = await census.all_gone(token, SURVIVAL)
            findings = [f"process {census.name_of(pid)} survived" for pid in census.survivors(token)]
            findings += [f"{path} was left" for path in _found(temporary, "agent-mux-*")]
        finally:
            client.kill()
            client.communicate()
            census.end(token)
        findings += [what for path in _found(place, "runs/*.journal") for what in _read_back(path)]
    return findings, SURVIVAL if settle is None else settle


def _start(kind: str, directory: str, token: str, backend: str, temporary: str) -> "subprocess.Popen[bytes]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return subprocess.Popen(
        [sys.executable, "-m", "agent_mux.testing.torture.client", kind, directory, token, backend],
        stdout=subprocess.PIPE,
        env={**inherited, VARIABLE: token, "TMPDIR": temporary},
    )


async def _ready(client: "subprocess.Popen[bytes]") -> None:
    assert client.stdout is not None  # noqa: S101  # it is a pipe
    os.set_blocking(client.stdout.fileno(), False)
    await anyio.wait_readable(client.stdout)


def _found(directory: str, pattern: str) -> list[Path]:
    return sorted(Path(directory).glob(pattern))


def _read_back(path: Path) -> list[str]:
    """What is wrong with a journal whose writer was killed: it can be read to its last whole record."""
    if not path.stat().st_size:
        return []  # killed before the first record
    reader = JournalReader(path)
    count = sum(1 for _ in reader.read())
    torn = path.stat().st_size - reader.position
    checker, lines, findings = ContractChecker(), 0, []
    for event in derive_events(path, TortureCodec):
        findings += [f"{path.name}: {breach}" for breach in checker.feed(event)]
        if isinstance(event, TextDeltaEvent):
            if event.delta.partition(" ")[0] != str(lines):
                findings.append(f"{path.name}: line {event.delta!r} came where line {lines} was due")
            lines += 1
    findings += [f"{path.name}: {breach}" for breach in checker.finish()]
    if torn > LONGEST_RECORD:
        findings.append(f"{path.name}: {torn} bytes behind record {count} cannot be read")
    return findings
