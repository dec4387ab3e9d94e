"""The arguments of the tools. Models read their JSON Schemas, so descriptions are short, precise, and have units.

Models send null for absent fields and numbers as text; both are accepted.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from agent_mux.errors import AgentMuxError

MAX_WAIT_MS = 50_000  # by default, the MCP SDKs cancel a call after 60 seconds
MAX_CHARACTERS = 60_000  # of a response; several agents truncate tool results at 25,000 tokens or earlier
MAX_PROMPT = 1_000_000  # characters


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base class of the arguments of all tools."""


RunId = Annotated[str, Meta(description="From start_run or list_runs.", max_length=64)]
RunIdOrLatest = Annotated[str, Meta(description="Default: the run that was started last.", max_length=64)]
Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT, description=(
    "The whole task: the other agent sees nothing of your conversation. Say what to do, where, and what to report."
))]  # fmt: skip
MaxChars = Annotated[int, Meta(ge=200, le=MAX_CHARACTERS, description="Longest answer, in characters.")]
Cwd = Annotated[str, Meta(max_length=4096, description=(
    "Directory to work in, absolute or relative to the first root. Default: the first root."
))]  # fmt: skip
Model = Annotated[str, Meta(min_length=1, max_length=200, description="Default: the agent's own.")]
Mode = Annotated[Literal["deny", "prompt", "yolo"], Meta(description=(
    "What happens when the agent asks for permission: deny refuses, prompt asks you (see watch_run, answer), yolo "
    "allows. Default: the most that list_agents shows."
))]  # fmt: skip
Timeout = Annotated[int, Meta(ge=1000, description="Time for the whole run, in milliseconds.")]
MaxCost = Annotated[float, Meta(gt=0, le=1e6, description="Stop it when it cost more US dollars.")]
KeepOpen = Annotated[bool, Meta(description=(
    "Stay open for send_prompt until stop_run. Default: end when the task is done."
))]  # fmt: skip
Continued = Annotated[str, Meta(max_length=64, description=(
    "Id of a run that is over: go on in its session, with the same agent and directory."
))]  # fmt: skip


class ListAgents(ToolRequest, frozen=True):
    """The arguments of `list_agents`: none."""


class StartRun(ToolRequest, frozen=True):
    """The arguments of `start_run`."""

    agent: Annotated[str, Meta(min_length=1, max_length=64, description="A name from list_agents.")]
    prompt: Prompt
    cwd: Cwd | UnsetType = UNSET
    model: Model | UnsetType = UNSET
    approval_mode: Mode | UnsetType = UNSET
    timeout_ms: Timeout | UnsetType = UNSET
    max_cost_usd: MaxCost | UnsetType = UNSET
    keep_open: KeepOpen = False
    continue_run: Continued | UnsetType = UNSET


class WatchRun(ToolRequest, frozen=True):
    """The arguments of `watch_run`."""

    run_id: RunIdOrLatest | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, description=(
        "Show what follows this event number: `next` of an earlier answer. Default: what was not shown yet."
    ))] | UnsetType = UNSET  # fmt: skip
    until: Annotated[Literal["waiting", "news", "now"], Meta(description=(
        "Answer when the run is over or waits for you (waiting), when there is anything new (news), or at once (now)."
    ))] = "waiting"  # fmt: skip
    wait_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="Answer after this time in any case.")] = 45_000
    view: Annotated[Literal["condensed", "raw"], Meta(description="raw: every event, as JSON. Long.")] = "condensed"
    max_chars: MaxChars = 12_000


class AnswerRun(ToolRequest, frozen=True):
    """The arguments of `answer`."""

    run_id: RunId
    decision: Annotated[Literal["approve", "deny", "text", "option"], Meta(description=(
        "An approval takes approve or deny; a question takes text, option or deny."
    ))]  # fmt: skip
    interaction_id: Annotated[str, Meta(max_length=200, description=(
        "Which one, from `pending`. May be left out when only one is pending."
    ))] | UnsetType = UNSET  # fmt: skip
    text: Annotated[str, Meta(max_length=100_000, description="The answer; with deny, the reason.")] | UnsetType = UNSET
    option: Annotated[int, Meta(ge=0, description="Position in `options`, from 0.")] | UnsetType = UNSET


class SendPrompt(ToolRequest, frozen=True):
    """The arguments of `send_prompt`."""

    run_id: RunId
    prompt: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT, description="What to do next.")]


class StopRun(ToolRequest, frozen=True):
    """The arguments of `stop_run`."""

    run_id: RunId
    when: Annotated[Literal["now", "done"], Meta(description=(
        "now: end it, whatever it does. done: let a run that was kept open finish what it was asked."
    ))] = "now"  # fmt: skip


class ListRuns(ToolRequest, frozen=True):
    """The arguments of `list_runs`: none."""


class GetResult(ToolRequest, frozen=True):
    """The arguments of `get_result`."""

    run_id: RunIdOrLatest | UnsetType = UNSET
    from_char: Annotated[int, Meta(ge=0, description="Where in its text to begin.")] = 0
    max_chars: MaxChars = 20_000


_Request = TypeVar("_Request", bound=ToolRequest)


def parse_request(kind: type[_Request], arguments: Mapping[str, Any] | None) -> _Request:
    """Convert the arguments of a tool call. Raises VALIDATION_ERROR that names the valid arguments."""
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        fields = ", ".join(kind.__struct_encode_fields__) or "none"
        raise AgentMuxError("VALIDATION_ERROR", f"{error}; the arguments are: {fields}") from error


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a request or response. Schemas of nested classes are under `$defs`."""
    _, components = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    schemas = {name: _simplify(schema) for name, schema in components.items()}
    own = schemas.pop(kind.__name__)
    return {**own, "$defs": schemas} if schemas else own


def _simplify(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the names and docstrings of our classes, and add the type of enumerations, which some clients require."""
    fields = {
        name: {"type": "string", **field} if "enum" in field else field for name, field in schema["properties"].items()
    }
    return {name: value for name, value in schema.items() if name not in {"title", "description"}} | {
        "properties": fields
    }
