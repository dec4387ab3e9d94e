"""The states of a run and the moves between them. Terminal states absorb. Source: run API, section 3."""

from collections.abc import Callable
from typing import Literal

from agent_mux.assembler import ExitReason
from agent_mux.errors import AgentMuxError

RunState = Literal[
    "spawned", "running", "paused", "interrupted", "completed", "aborted", "timed-out", "crashed", "killed"
]
TERMINAL: frozenset[RunState] = frozenset({"completed", "aborted", "timed-out", "crashed", "killed"})

_MOVES: dict[RunState, frozenset[RunState]] = {
    "spawned": TERMINAL.union({"running"}),
    "running": TERMINAL.union({"paused", "interrupted"}),
    "paused": TERMINAL.union({"running"}),
    "interrupted": TERMINAL.union({"running", "paused"}),
    **dict.fromkeys(TERMINAL, frozenset()),
}

_BY_EXIT_REASON: dict[ExitReason, RunState] = {
    "aborted": "aborted",
    "timeout": "timed-out",
    "inactivity": "timed-out",
    "killed": "killed",
    "crashed": "crashed",
    "truncated": "crashed",
}


class StateMachine:
    """The state of one run."""

    def __init__(self) -> None:
        self.state: RunState = "spawned"
        self._watchers: list[Callable[[RunState], None]] = []

    def on_change(self, callback: Callable[[RunState], None]) -> None:
        """Call back with each new state."""
        self._watchers.append(callback)

    @property
    def is_over(self) -> bool:
        """The run reached a terminal state."""
        return self.state in TERMINAL

    def allows(self, target: RunState) -> bool:
        """The move is legal."""
        return target in _MOVES[self.state]

    def require(self, target: RunState) -> None:
        """Raises INVALID_STATE_TRANSITION when the move would be illegal."""
        if not self.allows(target):
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"a run that is {self.state} cannot become {target}")

    def move(self, target: RunState) -> None:
        """Go to another state. Raises INVALID_STATE_TRANSITION for an illegal move."""
        self.require(target)
        self.state = target
        for tell in self._watchers:
            tell(target)

    def finish(self, reason: ExitReason) -> None:
        """Go to the terminal state that belongs to an exit reason."""
        self.move(state_after(reason))


def state_after(reason: ExitReason) -> RunState:
    """The terminal state that belongs to an exit reason."""
    return _BY_EXIT_REASON.get(reason, "completed")
