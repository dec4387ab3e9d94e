"""The JSON commands with which a program controls a run: by lines, over a WebSocket, or by HTTP.

`amux run --interactive --json` reads one command per line: a line that begins with `{` is a command, any other line is
a prompt. Each command is answered by one line, `ack` or `command_error`, which repeats the command's `id` if it has
one. Neither is the type of an event. See docs/how-to/talk-to-an-agent.md.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_mux._util.json_schemas import json_schema
from agent_mux._util.sanitize import to_json
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES, Boundary, Run
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import Approve, Choice, Deny, Response, Text
from agent_mux.sdk.options import ApprovalMode

LONGEST_LINE = 1 << 24  # bytes; a longer line is rejected, not a prompt
MAX_SHOWN = 200  # characters of a rejected line in its error message


class RunCommand(
    msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """A command to an active run, as the service and the control socket receive it."""

    id: Annotated[str | int | None, Meta(description="An id chosen by the program; the response repeats it.")] = None


class PromptCommand(RunCommand, frozen=True, tag="prompt"):
    """Begin the next turn with a prompt; an agent that merges messages adds it to the running turn."""

    text: str


class SteerCommand(RunCommand, frozen=True, tag="steer"):
    """Send a message into the running turn."""

    text: str


class QueueCommand(RunCommand, frozen=True, tag="queue"):
    """Queue a prompt: for its own turn after all others, or for the next boundary of the running turn."""

    text: str
    when: Boundary = "next-turn"


class SetModelCommand(RunCommand, frozen=True, tag="set_model"):
    """Use another model, at the latest from the next turn on."""

    model: str


class SetApprovalModeCommand(RunCommand, frozen=True, tag="set_approval_mode"):
    """Continue in another approval mode, at the latest from the next turn on."""

    mode: ApprovalMode


class InterruptCommand(RunCommand, frozen=True, tag="interrupt"):
    """Stop the running turn."""


class PauseCommand(RunCommand, frozen=True, tag="pause"):
    """Stop all processes of the agent."""


class ResumeCommand(RunCommand, frozen=True, tag="resume"):
    """Continue all processes of the agent."""


class ApproveCommand(RunCommand, frozen=True, tag="approve"):
    """Allow the action of an `approval_request`; without an id, of the oldest pending one."""

    interaction_id: str | None = None
    always: bool = False


class DenyCommand(RunCommand, frozen=True, tag="deny"):
    """Deny an approval or decline a question; without an id, deny the oldest pending approval."""

    interaction_id: str | None = None
    reason: str | None = None


class AnswerCommand(RunCommand, frozen=True, tag="answer"):
    """Answer an `input_required` with a text, or with one of its options by position from 0."""

    interaction_id: str
    text: str | None = None
    option: int | None = None


class ApproveAllCommand(RunCommand, frozen=True, tag="approve_all"):
    """Allow everything that is pending, except questions."""


class DenyAllCommand(RunCommand, frozen=True, tag="deny_all"):
    """Deny everything that is pending, including questions."""

    reason: str | None = None


class ResizeCommand(RunCommand, frozen=True, tag="resize"):
    """Set the size of the agent's terminal, in characters."""

    columns: int
    rows: int


class StatusCommand(RunCommand, frozen=True, tag="status"):
    """Return the status of the run."""


class CloseCommand(RunCommand, frozen=True, tag="close"):
    """Announce that no more prompts follow: the agent finishes its work and exits. So does the end of the input."""


class AbortCommand(RunCommand, frozen=True, tag="abort"):
    """End the run now."""


class KillCommand(RunCommand, frozen=True, tag="kill"):
    """End the run with SIGKILL, without asking the agent to exit."""


AnyCommand = (
    PromptCommand | SteerCommand | QueueCommand | SetModelCommand | SetApprovalModeCommand | InterruptCommand
    | PauseCommand | ResumeCommand | ApproveCommand | DenyCommand | AnswerCommand | ApproveAllCommand | DenyAllCommand
    | ResizeCommand | StatusCommand | CloseCommand | AbortCommand | KillCommand
)  # fmt: skip
ALLOWED_AFTER_THE_END = frozenset({"abort", "kill"})
"""The types of the commands that are `unneeded` after the end of the run, where the others are refused."""
RESPONSE_TYPES: tuple[Literal["ack"], Literal["command_error"]] = ("ack", "command_error")


@cache
def _decoder() -> msgspec.json.Decoder[AnyCommand]:
    return msgspec.json.Decoder(AnyCommand)  # made with the first command: most runs receive none


class InvalidCommandError(Exception):
    """A line that is not a valid command, with the type and the id as far as they are known."""

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
        command = _decoder().decode(text)
    except UnicodeDecodeError as error:
        raise InvalidCommandError(f"the line is not UTF-8: {error.reason} at byte {error.start}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidCommandError(f"{error}: {_shown(text)}", *_command_and_id(text)) from error
    problem = find_problem(command)
    if problem:
        raise InvalidCommandError(problem, command_name(command), command.id)
    return command


def find_problem(command: AnyCommand) -> str:
    """Return what is wrong with a well-formed command; empty if nothing is."""
    if isinstance(command, AnswerCommand) and (command.text is None) == (command.option is None):
        return "answer needs either text or option"
    if isinstance(command, PromptCommand | SteerCommand | QueueCommand) and not command.text.strip():
        return "text is empty"
    if isinstance(command, SetModelCommand) and not command.model.strip():
        return "model is empty"
    return ""


def command_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a command."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **json_schema(AnyCommand)}


def command_name(command: RunCommand) -> str:
    """Return the `type` of a command."""
    return str(command.__struct_config__.tag)


def ack(command: RunCommand, **data: Any) -> str:
    """Format the response to a command that was carried out."""
    return to_json({"type": "ack", "command": command_name(command), **_id(command.id), **data})


def command_error(error: AgentMuxError, command: str | None, id_: str | int | None) -> str:
    """Format the response to a command that failed."""
    details = {"code": error.code, "message": error.message, "recoverable": error.recoverable}
    return to_json({"type": "command_error", **({"command": command} if command else {}), **_id(id_), "error": details})


def _id(id_: str | int | None) -> Mapping[str, str | int]:
    return {} if id_ is None else {"id": id_}


def _command_and_id(text: bytes) -> tuple[str | None, str | int | None]:
    """Return the type and the id of an object that is not a valid command, each None unless it has the right type."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, None
    name, id_ = decoded.get("type"), decoded.get("id")
    is_id = isinstance(id_, str | int) and not isinstance(id_, bool)
    return name if isinstance(name, str) else None, id_ if is_id else None


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "..."


async def execute_command(run: Run, command: AnyCommand) -> dict[str, Any]:
    """Carry out a command on a run and return the data for its response. Raises as the methods of `Run` do.

    `abort` returns when the run is over. `status` returns nothing: callers add what they know.
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
            delivery = await _HANDLERS[type(command)](run, command)
    return {"delivery": delivery}


async def _kill(run: Run, _: KillCommand) -> Delivery:
    is_over = run.state in TERMINAL_STATES
    run.kill()
    return "unneeded" if is_over else "applied"


_HANDLERS: Mapping[type, Callable[[Run, Any], Awaitable[Delivery]]] = {
    PromptCommand: lambda run, command: run.send(command.text),
    SteerCommand: lambda run, command: run.steer(command.text),
    QueueCommand: lambda run, command: run.queue(command.text, command.when),
    SetModelCommand: lambda run, command: run.set_model(command.model),
    SetApprovalModeCommand: lambda run, command: run.set_approval_mode(command.mode),
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
