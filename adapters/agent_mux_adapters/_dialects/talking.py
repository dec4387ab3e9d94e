"""What a consumer asks, handed to the one who does it: the same for every agent that one can talk to."""

from collections.abc import Callable, Iterable
from signal import SIGINT
from typing import Protocol

from agent_mux.actions import Answer, AnyAction, Approve, Cancel, Close, Deny, Interrupt, Send, Steer
from agent_mux.adapter import Step
from agent_mux.effects import Refuse, SignalGroup


class Talking(Protocol):
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


Reply = Callable[[Approve | Deny | Answer], Iterable[Step]]
"""Answers what the agent waits for."""


def carry_out(action: AnyAction, conversation: Talking, reply: Reply) -> Iterable[Step]:
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


def of_one_prompt(action: AnyAction, program: str) -> Iterable[Step]:
    """Do what the consumer wants of a program that took its prompt and reads nothing more: it can be signalled."""
    match action:
        case Interrupt():
            return (SignalGroup(int(SIGINT)),)
        case Cancel() | Close():
            return ()
    why = f"{program} takes one prompt and no more: run with interactive=True, or continue its session in another run"
    return (Refuse("STDIN_NOT_AVAILABLE", why),)
