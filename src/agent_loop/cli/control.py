"""Executes the control lines of the agent protocol and responds to them."""

from collections.abc import AsyncIterator, Callable
from typing import assert_never

from agent_loop.cli import protocol
from agent_loop.cli.approvals import REFUSED, Approvals, InteractionDecision
from agent_loop.cli.protocol import (
    AnswerCommand,
    ApproveCommand,
    CancelCommand,
    CloseCommand,
    ControlCommand,
    DenyCommand,
    FollowUpCommand,
    InterruptCommand,
    InvalidCommandError,
    MessageCommand,
    PromptCommand,
    SetApprovalModeCommand,
    SetModelCommand,
    StartCommand,
    SteerCommand,
)
from agent_loop.cli.stream import EventStream
from agent_loop.cli.turns import Delivery, TurnRunner
from agent_loop.errors import AgentLoopError
from agent_loop.messages import Image, Shown, Text, UserMessage

Lines = AsyncIterator[bytes | None]


class ControlHandler:
    """Executes commands on a `TurnRunner` and its approvals."""

    def __init__(
        self,
        turns: TurnRunner,
        approvals: Approvals,
        stream: EventStream,
        print_line: Callable[[str], None],
        use_model: Callable[[str], None],
    ) -> None:
        """Create the handler of a conversation.

        Args:
            turns: Runs the prompts.
            approvals: Waits for the decisions.
            stream: Emits notes.
            print_line: Prints a response between the lines of the events.
            use_model: Uses another model from the next turn on. Raises `AgentLoopError` for one that cannot be used.
        """
        self._use_model = use_model
        self._turns = turns
        self._approvals = approvals
        self._stream = stream
        self._print_line = print_line

    async def run(self, lines: Lines) -> None:
        """Execute every line. At the end of input, close the conversation and deny all requests."""
        async for line in lines:
            self.handle_line(line)
        self._turns.close()
        self._approvals.stop_asking()

    def handle_line(self, line: bytes | None) -> None:
        """Execute one line; respond with an error to an invalid one. None stands for a line that was too long."""
        try:
            command = protocol.parse_command(line)
        except InvalidCommandError as error:
            self._stream.note(str(error), "verbose" if error.is_unknown else "warn")
            if not error.is_unknown:
                self._print_line(protocol.refused(error.command_id, "VALIDATION_ERROR", str(error)))
        else:
            self.handle(command)

    def handle(self, command: ControlCommand) -> None:  # noqa: C901  # one case per command
        """Execute a command and respond to it if it has an id."""
        match command:
            case PromptCommand() | SteerCommand() | FollowUpCommand():
                self._deliver(command)
            case ApproveCommand(request_id=request_id, always=always):
                self._answer(command, request_id, InteractionDecision(granted=True, always=always), "approval")
            case DenyCommand(request_id=request_id, reason=reason):
                self._answer(command, request_id, InteractionDecision(granted=False, text=reason or REFUSED), None)
            case AnswerCommand(request_id=request_id, text=text):
                self._answer(command, request_id, InteractionDecision(granted=True, text=text), "input")
            case SetModelCommand(model=model):
                self._set_model(command, model)
            case SetApprovalModeCommand(mode=mode):
                self._approvals.set_mode(mode)
                self._accept(command)
            case InterruptCommand():
                self._interrupt(command)
            case CancelCommand():
                self._turns.cancel()
                self._accept(command)
            case CloseCommand():
                self._turns.close()
                self._accept(command)
            case StartCommand():
                self._refuse(command, "VALIDATION_ERROR", "the run has started: `start` must be the first command")
            case _:
                assert_never(command)

    def _deliver(self, command: MessageCommand) -> None:
        message = message_of(command)
        if not message.content:
            self._refuse(command, "VALIDATION_ERROR", "the message is empty")
            return
        methods = {PromptCommand: self._turns.prompt, SteerCommand: self._turns.steer}
        delivery = methods.get(type(command), self._turns.follow_up)(message)
        if delivery is None:
            self._refuse(command, "STDIN_NOT_AVAILABLE", "the run is closed and accepts no more prompts")
        else:
            self._accept(command, delivery)

    def _answer(
        self, command: ControlCommand, interaction_id: str, decision: InteractionDecision, kind: str | None
    ) -> None:
        if self._approvals.answer(interaction_id, decision, kind):
            self._accept(command)
        else:
            self._refuse(command, "INTERACTION_NOT_FOUND", f"no request is pending under {interaction_id!r}")

    def _interrupt(self, command: ControlCommand) -> None:
        if self._turns.interrupt():
            self._accept(command)
        else:
            self._refuse(command, "INVALID_STATE_TRANSITION", "no turn is running")

    def _set_model(self, command: ControlCommand, model: str) -> None:
        try:
            self._use_model(model)
        except AgentLoopError as error:
            self._refuse(command, "VALIDATION_ERROR", str(error))
        else:
            self._accept(command)

    def _accept(self, command: ControlCommand, delivery: Delivery | None = None) -> None:
        if command.id is not None:
            self._print_line(protocol.accepted(command.id, delivery))

    def _refuse(self, command: ControlCommand, code: str, message: str) -> None:
        if command.id is not None:
            self._print_line(protocol.refused(command.id, code, message))
        else:
            self._stream.note(message, "warn")


def message_of(command: MessageCommand) -> UserMessage:
    """Return the message of a command, with its images before the text."""
    content: list[Shown] = [Image(image.data, image.mime_type) for image in command.images]
    if command.text:
        content.append(Text(command.text))
    return UserMessage(content=tuple(content))
