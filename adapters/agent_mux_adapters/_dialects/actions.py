"""Dispatch of consumer actions, and the queue of prompts: the same for every agent that takes input while it runs."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from signal import SIGINT
from typing import Protocol

from agent_mux.sdk.codec import (
    AnswerAction,
    AnyAction,
    ApproveAction,
    Cancel,
    Close,
    CodecOutput,
    DenyAction,
    Interrupt,
    Refuse,
    Send,
    SetApprovalMode,
    SetModel,
    SignalGroup,
    Steer,
)
from agent_mux.sdk.options import ApprovalMode


class ActionHandler(Protocol):
    """Our side of a running conversation with an agent."""

    def send(self, prompt: str, /) -> Iterable[CodecOutput]:
        """Queue a prompt for a turn of its own."""

    def steer(self, message: str, /) -> Iterable[CodecOutput]:
        """Send a message into the running turn."""

    def set_model(self, model: str, /) -> Iterable[CodecOutput]:
        """Use another model from now on."""

    def set_approval_mode(self, mode: ApprovalMode, /) -> Iterable[CodecOutput]:
        """Continue in another approval mode."""

    def interrupt(self) -> Iterable[CodecOutput]:
        """Stop the running turn, or the one that is about to start."""

    def cancel(self) -> Iterable[CodecOutput]:
        """Stop the turn because the run is being aborted."""

    def close(self) -> Iterable[CodecOutput]:
        """Note that no further prompts will come, and end the input when the agent is idle."""


ReplyHandler = Callable[[ApproveAction | DenyAction | AnswerAction], Iterable[CodecOutput]]
"""Sends a decision or an answer to the request of the agent that waits for it."""


def dispatch_action(  # noqa: PLR0911  # one return per action
    action: AnyAction, conversation: ActionHandler, reply: ReplyHandler
) -> Iterable[CodecOutput]:
    """Carry out a consumer action on a running conversation and return the resulting steps."""
    match action:
        case Send(prompt):
            return conversation.send(prompt)
        case Steer(message):
            return conversation.steer(message)
        case SetModel(model):
            return conversation.set_model(model)
        case SetApprovalMode(mode):
            return conversation.set_approval_mode(mode)
        case Interrupt():
            return conversation.interrupt()
        case Cancel():
            return conversation.cancel()
        case Close():
            return conversation.close()
        case ApproveAction() | DenyAction() | AnswerAction():
            return reply(action)


def one_shot_action(action: AnyAction, program: str) -> Iterable[CodecOutput]:
    """Carry out an action on a program that takes one prompt and no further input.

    It can be signalled; everything else is refused.
    """
    match action:
        case Interrupt():
            return (SignalGroup(int(SIGINT)),)
        case Cancel() | Close():
            return ()
        case SetModel() | SetApprovalMode():
            return (
                Refuse("CAPABILITY_ERROR", f"{program} takes one prompt and no changes: run with interactive=True"),
            )
    why = f"{program} takes one prompt and no more: run with interactive=True, or continue its session in another run"
    return (Refuse("STDIN_NOT_AVAILABLE", why),)


class PromptQueue(ABC):
    """The queue of prompts, and whether more may come.

    A subclass decides in `next` when the agent takes the next prompt.
    """

    def __init__(self, agent: str, *, interactive: bool) -> None:
        """Start with an empty queue. With `interactive`, more prompts may come until `close`."""
        self._agent = agent
        self._prompts: deque[str] = deque()
        self._closing = not interactive
        """Whether no further prompts will come."""
        self._closed = False
        """Whether the agent's input was ended."""

    @abstractmethod
    def next(self) -> tuple[CodecOutput, ...]:
        """Return the steps that are due: the next prompt, the end of our input, or nothing."""

    def send(self, prompt: str) -> tuple[CodecOutput, ...]:
        """Queue a prompt for a turn of its own, even if the agent would merge it into the running turn."""
        if self._closed:
            return (Refuse("STDIN_NOT_AVAILABLE", f"{self._agent} has finished and is exiting: start another run"),)
        self._queue(prompt)
        return self.next()

    def set_model(self, model: str) -> tuple[CodecOutput, ...]:
        """Refuse another model, for which this protocol has no request."""
        message = f"{self._agent} keeps its model in a run: continue its session in another run with model={model!r}"
        return (Refuse("CAPABILITY_ERROR", message),)

    def set_approval_mode(self, mode: ApprovalMode) -> tuple[CodecOutput, ...]:
        """Refuse another approval mode, for which this protocol has no request."""
        return (
            Refuse("CAPABILITY_ERROR", f"{self._agent} cannot change to {mode!r}: continue its session in a new run"),
        )

    def close(self) -> tuple[CodecOutput, ...]:
        """Accept no further prompts; end the input when the queue is empty and the agent is idle."""
        self._closing = True
        return self.next()

    def _queue(self, prompt: str) -> None:
        if prompt.strip():
            self._prompts.append(prompt)
