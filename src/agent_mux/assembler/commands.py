"""Commands that the agent tells of apart from their tool calls: nested in the calls that are open. §11, §25.3.4."""

from collections.abc import Callable
from typing import Any

from agent_mux.events.shell import ShellExitEvent, ShellStartEvent, ShellStderrDeltaEvent, ShellStdoutDeltaEvent
from agent_mux.sdk import facts

NEVER_EXITED = -1


class Commands:
    """The open commands of one scope that belong to no call in particular: never more than there is room for."""

    def __init__(self, emit: Callable[..., None], now: Callable[[], int], room: Callable[[], int]) -> None:
        """`room`: how many may run, which is how many calls are ready and have no command of their own."""
        self._emit = emit
        self._now = now
        self._room = room
        self._began: list[int] = []

    def begin(self, fact: facts.CommandBegan) -> None:
        """A command runs."""
        if len(self._began) < self._room():
            self._began.append(self._now())
            self._emit(ShellStartEvent, fact.command, fact.cwd)

    def show(self, fact: facts.CommandOutput) -> None:
        """Output of one of them."""
        if self._began and fact.text:
            kind: Any = ShellStderrDeltaEvent if fact.stream == "stderr" else ShellStdoutDeltaEvent
            self._emit(kind, fact.text)

    def end(self, fact: facts.CommandEnded) -> None:
        """One of them is over: the oldest, as far as anybody knows."""
        if self._began:
            since = self._began.pop(0)
            said = fact.duration_ms
            duration = said if said is not None and said >= 0 else self._now() - since
            self._emit(ShellExitEvent, fact.exit_code, duration)

    def make_room(self, left: int) -> None:
        """End those for which there is no room any more."""
        while len(self._began) > max(left, 0):
            self.end(facts.CommandEnded(NEVER_EXITED))
