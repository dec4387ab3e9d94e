"""The arguments of the tools. Models read their JSON Schemas, so descriptions are short, precise, and have units.

Models send null for absent fields and numbers as text; both are accepted.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from agent_mux._util.json_schemas import json_schema_components
from agent_mux.errors import AgentMuxError

MAX_WAIT_MS = 50_000  # by default, the MCP SDKs cancel a call after 60 seconds
MAX_CHARACTERS = 60_000  # of a response; several agents truncate tool results at 25,000 tokens or earlier
MAX_PROMPT = 1_000_000  # characters


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base class of the arguments of all tools."""


RunId = Annotated[str, Meta(description="Id of the run, from start_run or list_runs.", max_length=64)]
RunIdOrLatest = Annotated[str, Meta(description="Id of the run. Default: the latest run.", max_length=64)]
Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT, description=(
    "The complete task: the agent does not see your conversation. State what to do, where, and what to report."
))]  # fmt: skip
MaxChars = Annotated[int, Meta(ge=200, le=MAX_CHARACTERS, description="Maximum length of the result, in characters.")]
Cwd = Annotated[str, Meta(max_length=4096, description=(
    "Working directory, absolute or relative to the first root. Default: the first root."
))]  # fmt: skip
Model = Annotated[str, Meta(min_length=1, max_length=200, description="Model name. Default: the agent's own choice.")]
Mode = Annotated[Literal["deny", "prompt", "yolo"], Meta(description=(
    "How the agent's permission requests are handled: deny denies all, prompt asks you (see watch_run, answer), yolo "
    "approves all. Default: the most permissive mode that list_agents shows."
))]  # fmt: skip
Timeout = Annotated[int, Meta(ge=1000, description="Maximum duration of the run, in milliseconds.")]
MaxCost = Annotated[float, Meta(gt=0, le=1e6, description="Stop the run once its cost exceeds this, in US dollars.")]
KeepOpen = Annotated[bool, Meta(description=(
    "Keep the run open for send_prompt until stop_run. Default: end when the task is done."
))]  # fmt: skip
Continued = Annotated[str, Meta(max_length=64, description=(
    "Id of an ended run: continue its session, with the same agent. Default directory: that of the ended run."
))]  # fmt: skip


WaitMs = Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="Maximum time to wait, in milliseconds.")]


class ListAgents(ToolRequest, frozen=True):
    """The arguments of `list_agents`: none."""


class StartRun(ToolRequest, frozen=True):
    """The arguments of `start_run`: a task for another agent."""

    agent: Annotated[str, Meta(min_length=1, max_length=64, description="A name from list_agents.")]
    prompt: Prompt
    cwd: Cwd | UnsetType = UNSET
    model: Model | UnsetType = UNSET
    approval_mode: Mode | UnsetType = UNSET
    timeout_ms: Timeout | UnsetType = UNSET
    max_cost_usd: MaxCost | UnsetType = UNSET
    keep_open: KeepOpen = False
    continue_run: Continued | UnsetType = UNSET


class CompareAgents(ToolRequest, frozen=True):
    """The arguments of `compare_agents`: a task for several agents."""

    prompt: Prompt
    candidates: Annotated[list[str], Meta(min_length=1, max_length=10, description=(
        "AGENT or AGENT:MODEL for each, with names from list_agents."
    ))]  # fmt: skip
    checks: Annotated[list[str], Meta(max_length=10, description=(
        "Commands that judge each result, without a shell: exit code 0 passes. Needs approval mode yolo."
    ))] = []  # fmt: skip
    trials: Annotated[int, Meta(ge=1, le=10, description="Trials of each candidate.")] = 1
    cwd: Cwd | UnsetType = UNSET
    approval_mode: Mode | UnsetType = UNSET
    timeout_ms: Timeout | UnsetType = UNSET
    wait_ms: WaitMs = 45_000


class WatchComparison(ToolRequest, frozen=True):
    """The arguments of `watch_comparison`: a comparison, and how long to wait for its end."""

    comparison_id: Annotated[str, Meta(max_length=64, description="From compare_agents. Default: the latest.")] | (
        UnsetType
    ) = UNSET
    wait_ms: WaitMs = 45_000
    stop: Annotated[bool, Meta(description="Abort its runs first.")] = False


class WatchRun(ToolRequest, frozen=True):
    """The arguments of `watch_run`: what to wait for and what to return."""

    run_id: RunIdOrLatest | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, description=(
        "Return what follows this event number: `next` of an earlier result. Default: everything not returned yet."
    ))] | UnsetType = UNSET  # fmt: skip
    until: Annotated[Literal["waiting", "news", "now"], Meta(description=(
        "Return when the run is over or waits for you (waiting), when anything is new (news), or at once (now)."
    ))] = "waiting"  # fmt: skip
    wait_ms: WaitMs = 45_000
    view: Annotated[Literal["condensed", "raw"], Meta(description=(
        "condensed: messages, tool calls, changed files. raw: every event as JSON; long."
    ))] = "condensed"  # fmt: skip
    max_chars: MaxChars = 12_000


class AnswerRun(ToolRequest, frozen=True):
    """The arguments of `answer`: the decision on an approval or question."""

    run_id: RunId
    decision: Annotated[Literal["approve", "deny", "text", "option"], Meta(description=(
        "For an approval: approve or deny. For a question: text, option or deny."
    ))]  # fmt: skip
    interaction_id: Annotated[str, Meta(max_length=200, description=(
        "Which approval or question, from `pending`. Optional if only one is pending."
    ))] | UnsetType = UNSET  # fmt: skip
    text: Annotated[str, Meta(max_length=100_000, description="The answer; with deny, the reason.")] | UnsetType = UNSET
    option: Annotated[int, Meta(ge=0, description="Index of the choice in `options`, from 0.")] | UnsetType = UNSET


class SendPrompt(ToolRequest, frozen=True):
    """The arguments of `send_prompt`: a further prompt for an active run."""

    run_id: RunId
    prompt: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT, description="What to do next.")]


class StopRun(ToolRequest, frozen=True):
    """The arguments of `stop_run`: a run, and how it ends."""

    run_id: RunId
    when: Annotated[Literal["now", "done"], Meta(description=(
        "now: abort the run. done: let a run that was kept open finish its prompts first."
    ))] = "now"  # fmt: skip


class ListRuns(ToolRequest, frozen=True):
    """The arguments of `list_runs`: none."""


class GetResult(ToolRequest, frozen=True):
    """The arguments of `get_result`: a run, and a range of its text."""

    run_id: RunIdOrLatest | UnsetType = UNSET
    from_char: Annotated[int, Meta(ge=0, description="Index of the first character of the text to return.")] = 0
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
    _, components = json_schema_components((kind,), ref_template="#/$defs/{name}")
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
