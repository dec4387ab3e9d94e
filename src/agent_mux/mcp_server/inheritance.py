"""What a run that we start tells the servers below it: how deep they are, and what they may spend.

It goes by the environment. Agents give their MCP servers as little of theirs as they like (codex: `PATH`, `HOME` and a
few more), so the environments of the processes above us are looked at, too, where the system shows them (Linux).
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_mux.errors import AgentMuxError

DEPTH = "AGENT_MUX_DEPTH"
"""How many runs of servers like this one are above whoever reads it."""
MAX_DEPTH = "AGENT_MUX_MAX_DEPTH"
"""The lowest limit on that of all servers above."""
MAX_COST = "AGENT_MUX_MAX_COST_USD"
"""US dollars that the server above had left when it started the run."""
MOST_ANCESTORS = 64  # nobody is deeper in processes than that; a process table that changes meanwhile could have a loop
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Inherited:
    """What those above us say."""

    depth: int = 0
    max_depth: int | None = None
    max_cost_usd: float | None = None

    def joined(self, other: "Inherited") -> "Inherited":
        """The strictest of both."""
        return Inherited(
            max(self.depth, other.depth),
            _lowest(self.max_depth, other.max_depth),
            _lowest(self.max_cost_usd, other.max_cost_usd),
        )

    def environment(self) -> dict[str, str]:
        """As it is told to those below."""
        said = {DEPTH: self.depth, MAX_DEPTH: self.max_depth, MAX_COST: self.max_cost_usd}
        return {
            name: f"{value:.6f}" if name == MAX_COST else str(value)
            for name, value in said.items()
            if value is not None
        }


def inherited(environ: Mapping[str, str], proc: Path = _PROC, pid: int | None = None) -> Inherited:
    """What this environment says, and those of the processes above `pid` (default: us).

    Raises VALIDATION_ERROR for a variable of `environ` that says nothing that can be: guessing would lift a limit.
    """
    found = _said_in(environ)
    for above in _environments_above(os.getpid() if pid is None else pid, proc):
        try:
            found = found.joined(_said_in(above))
        except AgentMuxError:
            continue  # not ours to complain about; the variables of this process count in any case
    return found


def _said_in(environ: Mapping[str, str]) -> Inherited:
    depth = _number(environ, DEPTH, whole=True)
    most = _number(environ, MAX_DEPTH, whole=True)
    return Inherited(
        0 if depth is None else int(depth), None if most is None else int(most), _number(environ, MAX_COST, whole=False)
    )


def _number(environ: Mapping[str, str], name: str, *, whole: bool) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf:
        kind = "a whole number" if whole else "a number"
        raise AgentMuxError("VALIDATION_ERROR", f"{name} is {text[:40]!r}; it can be {kind} >= 0, or not be set")
    return value


def _environments_above(pid: int, proc: Path) -> Iterator[dict[str, str]]:
    for _ in range(MOST_ANCESTORS):
        pid = _parent_of(pid, proc)
        if pid <= 1:
            return
        yield _environment_of(pid, proc)


def _parent_of(pid: int, proc: Path) -> int:
    """0 where nobody knows."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return 0
    fields = stat[stat.rfind(b")") + 1 :].split()  # the name before may contain anything
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _environment_of(pid: int, proc: Path) -> dict[str, str]:
    """Ours of its variables, as it was started with them; nothing for somebody else's process."""
    try:
        entries = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in entries if entry.startswith(b"AGENT_MUX_"))
    return {name: value for name, _, value in pairs}


_Limit = TypeVar("_Limit", int, float)


def _lowest(one: _Limit | None, other: _Limit | None) -> _Limit | None:
    return min((value for value in (one, other) if value is not None), default=None)
