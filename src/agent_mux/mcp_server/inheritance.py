"""The limits that a server inherits from the servers above it, and passes to the agents that it starts.

They are environment variables. Some agents pass only a few variables to their MCP servers (Codex: `PATH`, `HOME` and
some more), so the environments of the ancestor processes are read, too, where the system provides them (Linux).
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_mux.errors import AgentMuxError

DEPTH = "AGENT_MUX_DEPTH"
"""The number of delegation servers among the ancestors of the process that reads the variable."""
MAX_DEPTH = "AGENT_MUX_MAX_DEPTH"
"""The lowest limit on that number of all those servers."""
MAX_COST = "AGENT_MUX_MAX_COST_USD"
"""US dollars that remained of the parent server's budget when it started the run."""
MAX_ANCESTORS = 64  # no process has more; a process table that changes while it is read could contain a loop
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class InheritedLimits:
    """The limits that servers above this one impose."""

    depth: int = 0
    """The number of servers above."""
    max_depth: int | None = None
    """The maximum depth; None: unlimited."""
    max_cost_usd: float | None = None
    """The maximum cost of all runs, in US dollars; None: unlimited."""

    def merge(self, other: "InheritedLimits") -> "InheritedLimits":
        """Return the stricter value of each limit."""
        return InheritedLimits(
            max(self.depth, other.depth),
            _lowest(self.max_depth, other.max_depth),
            _lowest(self.max_cost_usd, other.max_cost_usd),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that pass these limits to the processes of a run."""
        values = {DEPTH: self.depth, MAX_DEPTH: self.max_depth, MAX_COST: self.max_cost_usd}
        return {
            name: f"{value:.6f}" if name == MAX_COST else str(value)
            for name, value in values.items()
            if value is not None
        }


def read_inherited_limits(environ: Mapping[str, str], proc: Path = _PROC, pid: int | None = None) -> InheritedLimits:
    """Return the strictest limits in an environment and in those of the ancestors of a process.

    Args:
        environ: The environment of this process.
        proc: The mount point of the proc file system.
        pid: The process whose ancestors are read. Default: this process.

    Raises:
        AgentMuxError: VALIDATION_ERROR for an invalid variable in `environ`; guessing its value could lift a limit.
            Invalid variables of ancestors are ignored.
    """
    limits = _parse_environment(environ)
    for ancestor in _ancestor_environments(os.getpid() if pid is None else pid, proc):
        try:
            limits = limits.merge(_parse_environment(ancestor))
        except AgentMuxError:
            continue  # the variables of this process apply in any case
    return limits


def _parse_environment(environ: Mapping[str, str]) -> InheritedLimits:
    depth = _parse_number(environ, DEPTH, whole=True)
    max_depth = _parse_number(environ, MAX_DEPTH, whole=True)
    return InheritedLimits(
        0 if depth is None else int(depth),
        None if max_depth is None else int(max_depth),
        _parse_number(environ, MAX_COST, whole=False),
    )


def _parse_number(environ: Mapping[str, str], name: str, *, whole: bool) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf:
        kind = "a whole number" if whole else "a number"
        raise AgentMuxError("VALIDATION_ERROR", f"{name} is {text[:40]!r}; allowed: {kind} >= 0, or unset")
    return value


def _ancestor_environments(pid: int, proc: Path) -> Iterator[dict[str, str]]:
    for _ in range(MAX_ANCESTORS):
        pid = _parent_of(pid, proc)
        if pid <= 1:
            return
        yield _environment_of(pid, proc)


def _parent_of(pid: int, proc: Path) -> int:
    """Return the id of the parent process, 0 if it cannot be read."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return 0
    fields = stat[stat.rfind(b")") + 1 :].split()  # the program name before ")" may contain anything
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _environment_of(pid: int, proc: Path) -> dict[str, str]:
    """Return the initial `AGENT_MUX_` variables of a process; none if it belongs to another user."""
    try:
        entries = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in entries if entry.startswith(b"AGENT_MUX_"))
    return {name: value for name, _, value in pairs}


_Limit = TypeVar("_Limit", int, float)


def _lowest(one: _Limit | None, other: _Limit | None) -> _Limit | None:
    return min((value for value in (one, other) if value is not None), default=None)
