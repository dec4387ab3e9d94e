"""What a program can tell a run, as JSON: line by line to `amux run --interactive --json`, over a WebSocket, by HTTP.

A line that begins with `{` is a command, any other is a prompt. Each command is answered by one line, `ack` or
`command_error`, which has the command's `id` if it had one; neither is the type of an event. Documented in
docs/how-to/run-interactively.md.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from agent_mux._util.sanitize import to_json
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import Boundary, Run
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import Approve, Choice, Deny, Response, Text

LONGEST_LINE = 1 << 24  # bytes; whoever sends more without a line break sends no prompt
LONGEST_SHOWN = 200  # characters of a line that is complained about


class RunCommand(
    msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """Base of all commands."""

    id: str | int | None = None
    """Whatever the program knows it by: it comes back with the answer."""


class PromptCommand(RunCommand, frozen=True, tag="prompt"):
    """Begins the next turn, or is merged into the one that runs."""

    text: str


class SteerCommand(RunCommand, frozen=True, tag="steer"):
    """A message for the turn that runs."""

    text: str


class QueueCommand(RunCommand, frozen=True, tag="queue"):
    """A prompt behind all others, for a turn of its own; or for the next boundary of the turn that runs."""

    text: str
    when: Boundary = "next-turn"


class InterruptCommand(RunCommand, frozen=True, tag="interrupt"):
    """Stop the turn that runs."""


class PauseCommand(RunCommand, frozen=True, tag="pause"):
    """Stop all processes of the agent."""


class ResumeCommand(RunCommand, frozen=True, tag="resume"):
    """Let them go on."""


class ApproveCommand(RunCommand, frozen=True, tag="approve"):
    """Allow what an `approval_request` asks for; without its id, the oldest one that is pending."""

    interaction_id: str | None = None
    always: bool = False


class DenyCommand(RunCommand, frozen=True, tag="deny"):
    """Refuse it, or decline to answer a question; without an id, the oldest approval that is pending."""

    interaction_id: str | None = None
    reason: str | None = None


class AnswerCommand(RunCommand, frozen=True, tag="answer"):
    """Answer an `input_required`: with a text, or with one of its options, by position from 0."""

    interaction_id: str
    text: str | None = None
    option: int | None = None


class ApproveAllCommand(RunCommand, frozen=True, tag="approve_all"):
    """Allow all that is pending; questions are left alone."""


class DenyAllCommand(RunCommand, frozen=True, tag="deny_all"):
    """Refuse all that is pending, questions included."""

    reason: str | None = None


class ResizeCommand(RunCommand, frozen=True, tag="resize"):
    """Give the agent's terminal another size, in characters."""

    columns: int
    rows: int


class StatusCommand(RunCommand, frozen=True, tag="status"):
    """What the run is doing."""


class CloseCommand(RunCommand, frozen=True, tag="close"):
    """No more prompts: the agent finishes what it was asked, and leaves. So does the end of the input."""


class AbortCommand(RunCommand, frozen=True, tag="abort"):
    """End the run now."""


class KillCommand(RunCommand, frozen=True, tag="kill"):
    """End it without asking the agent."""


AnyCommand = (
    PromptCommand | SteerCommand | QueueCommand | InterruptCommand | PauseCommand | ResumeCommand | ApproveCommand
    | DenyCommand | AnswerCommand | ApproveAllCommand | DenyAllCommand | ResizeCommand | StatusCommand | CloseCommand
    | AbortCommand | KillCommand
)  # fmt: skip
RESPONSE_TYPES: tuple[Literal["ack"], Literal["command_error"]] = ("ack", "command_error")
_decoder: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


class InvalidCommandError(Exception):
    """A line that cannot be carried out. What is known of it goes into the answer."""

    def __init__(self, message: str, command: str | None = None, id_: str | int | None = None) -> None:
        super().__init__(message)
        self.command, self.id = command, id_


def read_command(line: bytes | None) -> AnyCommand | None:
    """Parse one line; None for a blank one. Raises `InvalidCommandError`; `line` is None if it was too long."""
    if line is None:
        raise InvalidCommandError(f"the line is longer than {LONGEST_LINE} bytes")
    text = line.strip()
    if not text:
        return None
    try:
        if not text.startswith(b"{"):
            return PromptCommand(text.decode())
        command = _decoder.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidCommandError(f"the line is not UTF-8: {error.reason} at byte {error.start}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidCommandError(f"{error}: {_shown(text)}", *_known(text)) from error
    why = find_problem(command)
    if why:
        raise InvalidCommandError(why, command_name(command), command.id)
    return command


def find_problem(command: AnyCommand) -> str:
    """What is wrong with a command that has the right shape; empty: nothing."""
    if isinstance(command, AnswerCommand) and (command.text is None) == (command.option is None):
        return "answer wants either text or option"
    if isinstance(command, PromptCommand | SteerCommand | QueueCommand) and not command.text.strip():
        return "text is empty"
    return ""


def command_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a command."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(AnyCommand)}


def command_name(command: RunCommand) -> str:
    """Its `type`."""
    return str(command.__struct_config__.tag)


def ack(command: RunCommand, **data: Any) -> str:
    """It was carried out."""
    return to_json({"type": "ack", "command": command_name(command), **_id(command.id), **data})


def command_error(error: AgentMuxError, command: str | None, id_: str | int | None) -> str:
    """It was not."""
    why = {"code": error.code, "message": error.message, "recoverable": error.recoverable}
    return to_json({"type": "command_error", **({"command": command} if command else {}), **_id(id_), "error": why})


def _id(given: str | int | None) -> Mapping[str, str | int]:
    return {} if given is None else {"id": given}


def _known(text: bytes) -> tuple[str | None, str | int | None]:
    """Type and id of an object that is no command, as far as they are what they should be."""
    try:
        told = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, None
    name, id_ = told.get("type"), told.get("id")
    is_id = isinstance(id_, str | int) and not isinstance(id_, bool)
    return name if isinstance(name, str) else None, id_ if is_id else None


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + "..."


async def execute_command(run: Run, command: AnyCommand) -> dict[str, Any]:
    """Tell the run, and return what is to be said in the answer. Raises as the handle does.

    `abort` returns when the run is over. `status` is for whoever knows more than the run.
    """
    match command:
        case ApproveCommand() | DenyCommand() | AnswerCommand():
            delivery = await _answer(run, command)
        case ApproveAllCommand():
            return {"count": await run.interaction.approve_all()}
        case DenyAllCommand(reason=reason):
            return {"count": await run.interaction.deny_all(reason)}
        case ResizeCommand(columns=columns, rows=rows):
            await run.resize(columns, rows)
            delivery = "applied"
        case StatusCommand():
            return {}
        case _:
            delivery = await _TELLING[type(command)](run, command)
    return {"delivery": delivery}


async def _kill(run: Run, _: KillCommand) -> Delivery:
    run.kill()
    return "applied"


_TELLING: Mapping[type, Callable[[Run, Any], Awaitable[Delivery]]] = {
    PromptCommand: lambda run, command: run.send(command.text),
    SteerCommand: lambda run, command: run.steer(command.text),
    QueueCommand: lambda run, command: run.queue(command.text, command.when),
    InterruptCommand: lambda run, _: run.interrupt(),
    PauseCommand: lambda run, _: run.pause(),
    ResumeCommand: lambda run, _: run.resume(),
    CloseCommand: lambda run, _: run.close(),
    AbortCommand: lambda run, _: run.abort(),
    KillCommand: _kill,
}


async def _answer(run: Run, command: ApproveCommand | DenyCommand | AnswerCommand) -> Delivery:
    match command:
        case ApproveCommand(interaction_id=None, always=always):
            return await run.approve(always=always)
        case DenyCommand(interaction_id=None, reason=reason):
            return await run.deny(reason)
    return await run.interaction.respond(command.interaction_id or "", _response(command))


def _response(command: ApproveCommand | DenyCommand | AnswerCommand) -> Response:
    match command:
        case ApproveCommand(always=always):
            return Approve(always)
        case DenyCommand(reason=reason):
            return Deny(reason)
    return Choice(command.option) if command.option is not None else Text(command.text or "")
