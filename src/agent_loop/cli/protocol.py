"""The lines of the agent protocol: control lines on standard input, events and responses on standard output.

Input is untrusted: a line that is not a valid command raises `InvalidCommandError` with a sentence, and changes
nothing. See docs/reference/agent-protocol.md.
"""

from typing import Annotated, Any, Literal, get_args

import msgspec

from agent_loop.cli.openapi_services import OpenApiSettings
from agent_loop.cli.stream import ApprovalMode, EmittedEvent
from agent_loop.tools.builtin.sandbox import SandboxMode
from agent_mux._util.sanitize import to_json, to_json_bytes
from agent_mux.events import encode_event, event_to_dict

MAX_LINE = 1 << 25
"""The longest control line in bytes. Lines can contain images."""
MAX_SHOWN = 200
"""The most characters of an invalid line that an error message contains."""


# -- control lines


class ImageData(msgspec.Struct, frozen=True, rename="camel"):
    """An image in a prompt."""

    mime_type: str
    data: str
    """The image in base64."""


class McpServerSettings(msgspec.Struct, frozen=True, rename="camel"):
    """An MCP server of the run: a program, or a URL."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "stdio"
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    honor_read_only: bool = False
    """Whether tools that the server declares as read-only need no approval. An extension of the protocol."""
    disclosure: Literal["eager", "lazy"] | None = None
    """When the model gets the definitions of its tools. An extension of the protocol."""


class _Command(msgspec.Struct, frozen=True, tag_field="type", rename="camel", kw_only=True):
    id: str | None = None
    """The sender's id for the command, which the response repeats. None: no response."""


class StartCommand(_Command, frozen=True, tag="start"):
    """The settings of the run. Missing fields have the defaults of the program."""

    protocol: int = 1
    interactive: bool = False
    model: str | None = None
    session_id: str | None = None
    fork_session_id: str | None = None
    no_session: bool = False
    approval_mode: ApprovalMode | None = None
    asks_everything: bool = False
    system_prompt: str | None = None
    system_prompt_mode: Literal["append", "prepend", "replace"] = "append"
    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    max_duration: float | None = None
    """The limit of a turn in seconds. An extension of the protocol."""
    thinking_effort: Literal["off", "minimal", "low", "medium", "high", "max"] | None = None
    thinking_budget_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_output_tokens: int | None = None
    output_schema: dict[str, Any] | None = None
    mcp_servers: list[McpServerSettings] = []
    allowed_tools: list[str] = []
    """Tools that need no approval."""
    disallowed_tools: list[str] = []
    """Tools that the model does not get."""
    add_dirs: list[str] = []
    """Directories beside the working directory in which tools may read and write."""
    readable: list[str] = []
    """Directories beside the working directory that tools may read, for example those of skills."""
    skills: list[str] = []
    """Directories of skills. An extension of the protocol."""
    trust_project: bool = False
    """Whether skills and MCP servers of the working directory are used. An extension of the protocol."""
    trust_project_skills: bool = False
    """Whether its skills are used, but not its MCP servers. An extension of the protocol."""
    skill_shell: bool = False
    """Whether commands in the instructions of a skill run when it is activated. An extension of the protocol."""
    max_active_skills: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The number of skills that may be active at the same time. An extension of the protocol."""
    accept_edits: bool = False
    """Whether changes of files need no approval in mode "prompt". An extension of the protocol."""
    fallback_models: list[str] = []
    """Models that replace a model whose calls fail, in this order."""
    sandbox: SandboxMode = "off"
    """Whether commands may write in the workspace only. An extension of the protocol."""
    sandbox_network: bool = False
    """Whether commands in the sandbox have network. An extension of the protocol."""
    sub_agents: list[str] = []
    """Other agents of agent-mux to which the model can delegate. An extension of the protocol."""
    openapi: list[str | OpenApiSettings] = []
    """Services whose operations become tools: OpenAPI documents, or settings. An extension of the protocol."""
    agent: str | None = None
    """The name of the agent: a built-in one, or that of an agent file. An extension of the protocol."""
    agent_file: str | None = None
    """The file of the agent. An extension of the protocol."""
    agents_docs: list[str] | None = None
    """Instruction files to load; None: those of the user, the working directory and all directories above it. An
    extension of the protocol.
    """


class _MessageCommand(_Command, frozen=True):
    text: str
    images: list[ImageData] = []


class PromptCommand(_MessageCommand, frozen=True, tag="prompt"):
    """Start a turn, after the running turn has ended."""


class SteerCommand(_MessageCommand, frozen=True, tag="steer"):
    """Send a message to the running turn; start a turn if none runs."""


class FollowUpCommand(_MessageCommand, frozen=True, tag="follow_up"):
    """Send a message that the running turn processes before it ends; start a turn if none runs."""


class ApproveCommand(_Command, frozen=True, tag="approve"):
    """Approve a request. `always` also approves similar requests for the rest of the session."""

    request_id: str
    always: bool = False


class DenyCommand(_Command, frozen=True, tag="deny"):
    """Deny an approval request, or decline to answer a question."""

    request_id: str
    reason: str | None = None


class AnswerCommand(_Command, frozen=True, tag="answer"):
    """Answer a question of the agent."""

    request_id: str
    text: str


class SetModelCommand(_Command, frozen=True, tag="set_model"):
    """Use another model from the next turn on."""

    model: str


class SetApprovalModeCommand(_Command, frozen=True, tag="set_approval_mode"):
    """Decide about the following tool calls in another mode."""

    mode: ApprovalMode


class InterruptCommand(_Command, frozen=True, tag="interrupt"):
    """Stop the running turn; the program continues."""


class CancelCommand(_Command, frozen=True, tag="cancel"):
    """Stop the running turn and exit."""


class CloseCommand(_Command, frozen=True, tag="close"):
    """Accept no more prompts; finish the pending ones and exit."""


MessageCommand = PromptCommand | SteerCommand | FollowUpCommand
ControlCommand = (
    StartCommand
    | PromptCommand
    | SteerCommand
    | FollowUpCommand
    | ApproveCommand
    | DenyCommand
    | AnswerCommand
    | SetModelCommand
    | SetApprovalModeCommand
    | InterruptCommand
    | CancelCommand
    | CloseCommand
)
_DECODER: msgspec.json.Decoder[ControlCommand] = msgspec.json.Decoder(ControlCommand)
_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in get_args(ControlCommand))


class InvalidCommandError(ValueError):
    """A line that is not a valid command.

    `is_unknown`: the type of the command is unknown. It may be from a later version of the protocol and is ignored.
    """

    def __init__(self, message: str, command_id: str | None = None, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.command_id = command_id
        self.is_unknown = is_unknown


def parse_command(line: bytes | None) -> ControlCommand:
    """Parse a control line. None stands for a line that was too long. Raises `InvalidCommandError`."""
    if line is None:
        raise InvalidCommandError(f"a line with more than {MAX_LINE:,} bytes was skipped")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _invalid_command(line, error) from None


def _invalid_command(line: bytes, error: Exception) -> InvalidCommandError:
    shown = line[:MAX_SHOWN].decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return InvalidCommandError(f"a line is not valid JSON: {shown!r}")
    if not isinstance(value, dict):
        return InvalidCommandError(f"a line is not a JSON object: {shown!r}")
    given_id, kind = value.get("id"), value.get("type")
    command_id = given_id if isinstance(given_id, str) else None
    if not isinstance(kind, str):
        return InvalidCommandError(f"a line has no type: {shown!r}", command_id)
    if kind not in _TYPES:
        message = f"unknown type of control line: {kind[:MAX_SHOWN]!r}"
        return InvalidCommandError(message, command_id, is_unknown=True)
    return InvalidCommandError(f"invalid {kind!r} command: {error}", command_id)


# -- events and responses


def event_line(emitted: EmittedEvent) -> str:
    """Return an event as a JSON line, without accumulated text, whose size grows with the square of the text."""
    if not emitted.extra:
        return encode_event(emitted.event, accumulated=False).decode() + "\n"
    return to_json_bytes({**event_to_dict(emitted.event, accumulated=False), **emitted.extra}).decode() + "\n"


def accepted(command_id: str, delivery: str | None = None) -> str:
    """Return the response line to a command that was executed."""
    return _response(id=command_id, accepted=True, delivery=delivery)


def refused(command_id: str | None, code: str, message: str) -> str:
    """Return the response line to a command that was not executed."""
    return _response(id=command_id, accepted=False, code=code, message=message)


def _response(**fields: Any) -> str:
    return to_json({"type": "response", **{name: value for name, value in fields.items() if value is not None}}) + "\n"
