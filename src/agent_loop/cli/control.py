"""The control lines: read, carried out, answered. Source: the agent protocol, "Control lines"."""

from collections.abc import AsyncIterator, Callable
from typing import assert_never

from agent_loop.cli import json_output
from agent_loop.cli.approvals import REFUSED, Approvals, Verdict
from agent_loop.cli.commands import (
    Answer,
    Approve,
    Cancel,
    Close,
    Command,
    Deny,
    FollowUp,
    Interrupt,
    NoCommand,
    Prompt,
    Said,
    Start,
    Steer,
    read_command,
)
from agent_loop.cli.conversation import Conversation, Delivery
from agent_loop.cli.stream import EventStream
from agent_loop.messages import Image, Shown, Text, UserMessage

Say = Callable[[str], None]
Lines = AsyncIterator[bytes | None]


class Control:
    """Whoever drives the program, through its standard input."""

    def __init__(self, conversation: Conversation, approvals: Approvals, stream: EventStream, say: Say) -> None:
        """`say` prints a line between those of the events."""
        self._conversation = conversation
        self._approvals = approvals
        self._stream = stream
        self._say = say

    async def listen(self, lines: Lines) -> None:
        """Carry out every line; the end of input closes the conversation, and nobody answers any more."""
        async for line in lines:
            self.hear(line)
        self._conversation.close()
        self._approvals.leave()

    def hear(self, line: bytes | None) -> None:
        """Carry out a line, whatever it is."""
        try:
            command = read_command(line)
        except NoCommand as error:
            self.complain(error)
        else:
            self.carry_out(command)

    def complain(self, error: NoCommand) -> None:
        """A line that is no command."""
        self._stream.note(str(error), "verbose" if error.is_unknown else "warn")
        if not error.is_unknown:
            self._say(json_output.refused(error.command_id, "VALIDATION_ERROR", str(error)))

    def carry_out(self, command: Command) -> None:
        """Do what a command says."""
        match command:
            case Prompt() | Steer() | FollowUp():
                self._deliver(command)
            case Approve(request_id=asked, always=always):
                self._settle(command, asked, Verdict(granted=True, always=always), "approval")
            case Deny(request_id=asked, reason=reason):
                self._settle(command, asked, Verdict(granted=False, text=reason or REFUSED), None)
            case Answer(request_id=asked, text=text):
                self._settle(command, asked, Verdict(granted=True, text=text), "input")
            case Interrupt():
                self._interrupt(command)
            case Cancel():
                self._conversation.cancel()
                self._accept(command)
            case Close():
                self._conversation.close()
                self._accept(command)
            case Start():
                self._refuse(command, "VALIDATION_ERROR", "the run has begun: `start` comes once, and first")
            case _:
                assert_never(command)

    def _deliver(self, said: Said) -> None:
        message = message_of(said)
        if not message.content:
            self._refuse(said, "VALIDATION_ERROR", "the message is empty")
            return
        tell = {Prompt: self._conversation.prompt, Steer: self._conversation.steer}
        delivery = tell.get(type(said), self._conversation.follow_up)(message)
        if delivery is None:
            self._refuse(said, "STDIN_NOT_AVAILABLE", "the run is closed: it takes no more prompts")
        else:
            self._accept(said, delivery)

    def _settle(self, command: Command, interaction_id: str, verdict: Verdict, kind: str | None) -> None:
        if self._approvals.settle(interaction_id, verdict, kind):
            self._accept(command)
        else:
            self._refuse(command, "INTERACTION_NOT_FOUND", f"nothing waits for an answer under {interaction_id!r}")

    def _interrupt(self, command: Command) -> None:
        if self._conversation.interrupt():
            self._accept(command)
        else:
            self._refuse(command, "INVALID_STATE_TRANSITION", "there is nothing to interrupt: no turn runs")

    def _accept(self, command: Command, delivery: Delivery | None = None) -> None:
        if command.id is not None:
            self._say(json_output.accepted(command.id, delivery))

    def _refuse(self, command: Command, code: str, message: str) -> None:
        if command.id is not None:
            self._say(json_output.refused(command.id, code, message))
        else:
            self._stream.note(message, "warn")


def message_of(said: Said) -> UserMessage:
    """What was said, as a message."""
    shown: list[Shown] = [Image(picture.data, picture.mime_type) for picture in said.images]
    if said.text:
        shown.append(Text(said.text))
    return UserMessage(content=tuple(shown))
