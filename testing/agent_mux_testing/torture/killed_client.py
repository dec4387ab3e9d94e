"""Cases that kill a client with SIGKILL, and check what survives it."""

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
from agent_mux.journal.file import JournalReader
from agent_mux.process.marker import PREFIX
from agent_mux.run.derivation import derive_events
from agent_mux_testing.torture import census
from agent_mux_testing.torture.adapter import TortureCodec
from agent_mux_testing.torture.case import CaseOutcome, Circumstances

SEED = 20261122
MAX_DELAY = 1.2  # seconds from the first runs to the kill
SURVIVAL_BOUND = 30.0  # seconds after which a process that still runs counts as a survivor
MAX_RECORD_SIZE = 1 << 17  # bytes of a chunk of output with its header
VARIABLE = "AGENT_MUX_TORTURE"  # holds the token for processes that only inherit: client and reaper


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledClient:
    """A case that kills a client at random points; the size is the number of repetitions."""

    name: str
    meaning: str
    kind: str
    """A key of `client.KINDS`."""
    sizes: tuple[int, int]
    bound: float = 400.0
    at_terminal: bool = False
    """Every repetition uses pipes and terminals already."""

    async def play(self, circumstances: Circumstances) -> CaseOutcome:
        """Kill one client after the other, and collect the findings."""
        chance = random.Random(SEED)  # noqa: S311  # the same delays in every torture
        findings: list[str] = []
        slowest = 0.0
        for number in range(circumstances.size):
            delay = chance.uniform(0, MAX_DELAY)
            found, settle = await _repetition(self.kind, delay, circumstances.backend)
            findings += [f"killed {delay:.3f} s after its start (repetition {number}): {finding}" for finding in found]
            slowest = max(slowest, settle)
        return CaseOutcome(verdict="killed", findings=tuple(findings), settle=slowest)


async def _repetition(kind: str, delay: float, backend: str) -> tuple[list[str], float]:
    token = f"torture-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
        client = _start(kind, folder, token, backend, temporary)
        try:
            await _ready(client)
            await anyio.sleep(delay)
            client.send_signal(signal.SIGKILL)
            client.wait()
            settle = await census.all_gone(token, SURVIVAL_BOUND)
            findings = [f"process {census.name_of(pid)} survived" for pid in census.survivors(token)]
            findings += [f"{path} was left" for path in _found(temporary, "agent-mux-*")]
        finally:
            client.kill()
            client.communicate()
            census.end(token)
        findings += [finding for path in _found(folder, "runs/*.journal") for finding in _journal_findings(path)]
    return findings, SURVIVAL_BOUND if settle is None else settle


def _start(kind: str, directory: str, token: str, backend: str, temporary: str) -> "subprocess.Popen[bytes]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return subprocess.Popen(
        [sys.executable, "-m", "agent_mux_testing.torture.client", kind, directory, token, backend],
        stdout=subprocess.PIPE,
        env={**inherited, VARIABLE: token, "TMPDIR": temporary},
    )


async def _ready(client: "subprocess.Popen[bytes]") -> None:
    assert client.stdout is not None  # noqa: S101  # it is a pipe
    os.set_blocking(client.stdout.fileno(), False)
    await anyio.wait_readable(client.stdout)


def _found(directory: str, pattern: str) -> list[Path]:
    return sorted(Path(directory).glob(pattern))


def _journal_findings(path: Path) -> list[str]:
    """Return what is wrong with a journal whose writer was killed: it must be readable to its last whole record."""
    if not path.stat().st_size:
        return []  # killed before the first record
    reader = JournalReader(path)
    count = sum(1 for _ in reader.read())
    torn = path.stat().st_size - reader.position
    checker, lines, findings = ContractChecker(), 0, []
    for event in derive_events(path, TortureCodec):
        findings += [f"{path.name}: {violation}" for violation in checker.feed(event)]
        if isinstance(event, TextDeltaEvent):
            if event.delta.partition(" ")[0] != str(lines):
                findings.append(f"{path.name}: line {event.delta!r} came where line {lines} was due")
            lines += 1
    findings += [f"{path.name}: {violation}" for violation in checker.finish()]
    if torn > MAX_RECORD_SIZE:
        findings.append(f"{path.name}: {torn} bytes behind record {count} cannot be read")
    return findings
