"""The threads of one app-server: the main one and those of its sub-agents, which share the stream.

A sub-agent's first lines may come before the line that names it: they wait until it is introduced.
"""

from collections.abc import Iterable

from agent_mux.facts import (
    ApprovalAsked,
    Fact,
    Ignored,
    InputAsked,
    InSubagent,
    RequestSettled,
    SubagentBegin,
    SubagentDone,
)
from agent_mux_adapters.codex.delegation import UNNAMED, Delegation
from agent_mux_adapters.codex.thread import Thread

# Never inside: whoever has to decide must see requests, and a sub-agent's own sub-agents are sub-agents of the run.
_OF_THE_RUN = (ApprovalAsked, InputAsked, RequestSettled, SubagentBegin, SubagentDone)


class Threads:
    """Which facts belong to whom."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._known: dict[str, Thread] = {}
        self.main: Thread | None = None
        self.delegation = Delegation()
        self._waiting: dict[str, list[Fact]] = {}

    def get(self, thread_id: str) -> Thread:
        """The thread with this id; the first one that is seen is the main one."""
        thread = self._known.get(thread_id)
        if thread is None:
            thread = self._known[thread_id] = Thread(thread_id, self._cwd, is_inside=self.main is not None)
            if self.main is None:
                self.main = thread
        return thread

    def open(self, thread_id: str, cwd: str | None) -> None:
        """The main thread was opened, in this folder. A transcript's reader does not know it before."""
        self._cwd = self._cwd or cwd or ""
        thread = self.get(thread_id)
        thread.cwd = thread.cwd or self._cwd

    def all(self) -> Iterable[Thread]:
        """Every thread that was seen."""
        return self._known.values()

    def tell(self, thread: Thread, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """The facts of a thread as facts of the run."""
        if not thread.is_inside:
            return facts
        shown = tuple(fact for fact in facts if isinstance(fact, _OF_THE_RUN))
        inner = [fact for fact in facts if not isinstance(fact, (*_OF_THE_RUN, Ignored))]
        self._waiting.setdefault(thread.id, []).extend(inner)
        if not self.delegation.knows(thread.id):
            if self.delegation.spawning:
                return shown or (Ignored("sub-agent", "waits for the line that introduces it"),)
            return (*self.introduce(thread.id, UNNAMED, ""), *shown)
        return (*self._release(thread.id), *shown) or facts

    def introduce(self, thread_id: str, name: str, prompt: str) -> tuple[Fact, ...]:
        """A task was delegated; what waited for it follows."""
        return *self.delegation.begin(thread_id, name, prompt), *self._release(thread_id)

    def release_known(self) -> tuple[Fact, ...]:
        """What waited for sub-agents that are known by now."""
        known = [thread_id for thread_id in self._waiting if self.delegation.knows(thread_id)]
        return tuple(fact for thread_id in known for fact in self._release(thread_id))

    def _release(self, thread_id: str) -> tuple[Fact, ...]:
        return tuple(InSubagent(thread_id, fact) for fact in self._waiting.pop(thread_id, ()))
