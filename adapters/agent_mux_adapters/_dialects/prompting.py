"""Prompts, given to an agent one after the other: what the conversations with all of them have in common."""

from abc import ABC, abstractmethod
from collections import deque

from agent_mux.adapter import Step
from agent_mux.effects import Refuse


class Prompting(ABC):
    """The prompts that wait, and whether more will come. What an agent is told, and when, its own class knows."""

    def __init__(self, agent: str, *, interactive: bool) -> None:
        """`interactive`: more prompts may come until `close`."""
        self._agent = agent
        self._prompts: deque[str] = deque()
        self._closing = not interactive
        """No more prompts will come."""
        self._closed = False
        """The agent was told to leave."""

    @abstractmethod
    def next(self) -> tuple[Step, ...]:
        """The next prompt, or the end of our input, if it is time for one of them."""

    def send(self, said: str) -> tuple[Step, ...]:
        """A prompt for a turn of its own, even where the agent itself would merge it into the turn that runs."""
        if self._closed:
            return (Refuse("STDIN_NOT_AVAILABLE", f"{self._agent} has finished and is leaving: start another run"),)
        self._queue(said)
        return self.next()

    def close(self) -> tuple[Step, ...]:
        """No more prompts will come."""
        self._closing = True
        return self.next()

    def _queue(self, said: str) -> None:
        if said.strip():
            self._prompts.append(said)
