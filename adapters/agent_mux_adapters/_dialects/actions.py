"""What a consumer asks, handed to the one who does it: the same for every agent that one can talk to."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from signal import SIGINT
from typing import Protocol

from agent_mux.actions import Answer, AnyAction, Approve, Cancel, Close, Deny, Interrupt, Send, Steer
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, SignalGroup


class ActionHandler(Protocol):
    """Our side of a conversation with an agent."""

    def send(self, said: str, /) -> Iterable[Step]:
        """A prompt for a turn of its own."""

    def steer(self, said: str, /) -> Iterable[Step]:
        """A message for the turn that runs."""

    def interrupt(self) -> Iterable[Step]:
        """Stop the turn that runs, or is about to."""

    def cancel(self) -> Iterable[Step]:
        """The run is being aborted."""

    def close(self) -> Iterable[Step]:
        """No more prompts will come."""


ReplyHandler = Callable[[Approve | Deny | Answer], Iterable[Step]]
"""Answers what the agent waits for."""


def dispatch_action(action: AnyAction, conversation: ActionHandler, reply: ReplyHandler) -> Iterable[Step]:
    """Do what the consumer wants."""
    match action:
        case Send(said):
            return conversation.send(said)
        case Steer(said):
            return conversation.steer(said)
        case Interrupt():
            return conversation.interrupt()
        case Cancel():
            return conversation.cancel()
        case Close():
            return conversation.close()
        case Approve() | Deny() | Answer():
            return reply(action)


def one_shot_action(action: AnyAction, program: str) -> Iterable[Step]:
    """Do what the consumer wants of a program that took its prompt and reads nothing more: it can be signalled."""
    match action:
        case Interrupt():
            return (SignalGroup(int(SIGINT)),)
        case Cancel() | Close():
            return ()
    why = f"{program} takes one prompt and no more: run with interactive=True, or continue its session in another run"
    return (Refuse("STDIN_NOT_AVAILABLE", why),)


# TODO Prompts, given to an agent one after the other: what the conversations with all of them have in common.


class PromptQueue(ABC):
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
