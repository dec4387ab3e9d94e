"""Options of a run as one value. Options of a run override those of the agent, which override the defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal

from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError
from agent_loop.json_schema import check_schema
from agent_loop.output_types import OutputSchema, schema_of_output
from agent_loop.providers.provider import CacheSettings, ThinkingLevel

QueueMode = Literal["one_at_a_time", "all"]
ToolExecution = Literal["parallel", "sequential", "batched"]
CompactStrategy = Literal["off", "tiered", "tail"]
ToolDisclosure = Literal["eager", "lazy", "auto"]
ExceedMode = Literal["block", "steer"]
OnExceed = Callable[[str, int], tuple[ExceedMode, str]]
"""Return whether to block or to steer, and the message for the model (empty: the default message)."""

UNSET: Any = type("Unset", (), {"__repr__": lambda _: "UNSET", "__bool__": lambda _: False})()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits(Checked):
    """Hard limits of one run; None disables a limit."""

    max_turns: int | None = 50
    """Maximum number of model calls."""
    max_total_tokens: int | None = 1_000_000
    """Maximum of input, output and cached tokens over all calls."""
    max_duration: float | None = 600.0
    """Maximum duration in seconds."""
    max_cost_usd: float | None = None
    """Maximum cost; ignored while the price of the model is unknown."""


DEFAULT_CONTEXT_TOKENS = 100_000
"""Token budget of a request to a model whose window is unknown."""
NO_LIMITS = ExecutionLimits(max_turns=None, max_total_tokens=None, max_duration=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings(Checked):
    """When and how often a model call is repeated after a retryable error."""

    max_retries: int = 3
    initial_delay: float = 1.0
    """Seconds before the first retry."""
    multiplier: float = 2.0
    max_delay: float = 30.0
    """Maximum delay in seconds, before jitter."""
    jitter: float = 0.2
    """Fraction of the delay that is randomly added or subtracted."""
    status_codes: frozenset[int] | None = None
    """HTTP statuses that are retried, instead of those of rate limits and network errors (408, 429, 5xx). Errors
    without a status are retried by their kind.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDecay(Checked):
    """Geometric reduction of the thinking budget in later turns of a run."""

    after_turn: int
    """The first turn (from 0) with a smaller budget."""
    factor: float = 0.5
    floor: int = 0
    """Minimum budget in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBudget(Checked):
    """Maximum number of calls of one tool in one run."""

    max_calls: int
    on_exceed: ExceedMode | OnExceed = "block"
    """Block the call, or allow it and send the model a message; or a function of (tool, calls so far)."""
    message: str = ""
    """Message for the model; empty: the default message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionLimits(Checked):
    """What happens when the model repeats a tool call: same arguments, same outcome, and no change in between."""

    warn_after: int = 3
    """Equal calls from which on the result has a note for the model."""
    stop_after: int = 10
    """Equal failing calls after which the run stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings(Checked):
    """When and how the context is compacted."""

    strategy: CompactStrategy = "tiered"
    max_context_tokens: int | None = None
    """Token budget of a request, the system prompt included; the smaller of it and the model's window counts.

    None: the model's window without the answer (`Behavior.max_tokens`), or `DEFAULT_CONTEXT_TOKENS` if the window is
    unknown.
    """
    system_prompt_tokens: int = 4_000
    """Tokens reserved for the system prompt."""
    keep_recent: int = 10
    """Number of messages at the end that are kept in full."""
    keep_first: int = 2
    """Number of messages at the beginning that are kept in full."""
    tool_output_max_lines: int = 50
    """Lines that the first tier keeps of each tool output."""
    tail_threshold: int = 128 * 1024
    """Bytes of tool output above which the tail strategy elides old outputs."""
    tail_keep_turns: int = 4
    """Number of latest turns whose outputs the tail strategy keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior(Checked):
    """All options of a run. Unset fields fall back to the agent's behavior, then to `DEFAULTS`."""

    max_iterations: int = UNSET
    """Turns after which the model is asked for a final summary, without tools."""
    limits: ExecutionLimits = UNSET
    """Limits at which the run stops without a summary."""
    max_tokens: int | None = UNSET
    """Maximum output tokens of one answer."""
    temperature: float | None = UNSET
    top_p: float | None = UNSET
    top_k: int | None = UNSET
    thinking: ThinkingLevel | None = UNSET
    thinking_budget: int | None = UNSET
    """Tokens; takes precedence over the level."""
    thinking_decay: ThinkingDecay | Callable[[int, int], int] | None = UNSET
    """A decay, or a function of (turn from 0, base tokens); the result is clamped to 0 and the base."""
    cache: CacheSettings = UNSET
    tool_choice: str = UNSET
    tool_execution: ToolExecution = UNSET
    """How calls of read-only tools in one answer run. All other calls run one by one, in the order of the answer."""
    batch_size: int = UNSET
    """Number of read-only calls that run concurrently with `tool_execution="batched"`."""
    output_schema: OutputSchema | None = UNSET
    """JSON Schema of the structured answer, or its type: a pydantic model, a dataclass, or any other type that pydantic
    can validate. `RunResult.output` is an instance of the type. None for a text answer.
    """
    retry: RetrySettings = UNSET
    context: ContextSettings = UNSET
    request_timeout: float | None = UNSET
    """Seconds for one model call."""
    steering_mode: QueueMode = UNSET
    follow_up_mode: QueueMode = UNSET
    tool_output_budget: int | None = UNSET
    """Bytes of tool output in one turn above which the model is asked to summarize."""
    tool_budgets: Mapping[str, ToolBudget] = UNSET
    repetition: RepetitionLimits | None = UNSET
    """When a repeated tool call is noted and ends the run; None: never."""
    dedup_reads: bool = UNSET
    """Whether an identical second read of a file returns a stub."""
    dedup_tools: Mapping[str, Callable[[Mapping[str, Any]], str]] = UNSET
    """Tool -> hash of its arguments. A repeated call returns the last result; not for tools with side effects."""
    require_read_before_edit: bool = UNSET
    read_line_numbers: bool = UNSET
    elide_stale_reads: bool = UNSET
    """Whether older reads of a file that changed later are sent as stubs."""
    tool_disclosure: ToolDisclosure = UNSET
    """Whether the model gets the definitions of MCP tools at once ("eager") or a catalog and `tool_search` ("lazy").
    "auto": lazy from 40 MCP tools on. `McpServer.disclosure` takes precedence.
    """
    max_handoffs: int = UNSET
    """Handoffs of one run after which the agent that has the conversation must finish it."""
    tool_search: bool = UNSET
    """Whether the tool `tool_search` is added; False for an agent with another way to unlock tools."""
    tool_search_limit: int = UNSET
    """Tools that one search returns by default."""
    persist_threshold: int | None = UNSET
    """Bytes above which a tool result is written to `persist_dir`; the model gets a preview."""
    persist_dir: str | None = UNSET
    persist_exclude_tools: frozenset[str] = UNSET

    def over(self, base: "Behavior") -> "Behavior":
        """Return the set fields of this behavior merged over `base`."""
        given = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not UNSET}
        return replace(base, **given)


DEFAULTS = Behavior(
    max_iterations=200,
    limits=ExecutionLimits(),
    max_tokens=16_384,
    temperature=None,
    top_p=None,
    top_k=None,
    thinking=None,
    thinking_budget=None,
    thinking_decay=None,
    cache=CacheSettings(),
    tool_choice="auto",
    tool_execution="parallel",
    batch_size=4,
    output_schema=None,
    retry=RetrySettings(),
    context=ContextSettings(),
    request_timeout=None,
    steering_mode="one_at_a_time",
    follow_up_mode="one_at_a_time",
    tool_output_budget=None,
    tool_budgets={},
    repetition=RepetitionLimits(),
    dedup_reads=True,
    dedup_tools={},
    require_read_before_edit=False,
    read_line_numbers=True,
    elide_stale_reads=False,
    tool_disclosure="auto",
    max_handoffs=10,
    tool_search=True,
    tool_search_limit=5,
    persist_threshold=None,
    persist_dir=None,
    persist_exclude_tools=frozenset(),
)
"""The values of options that neither the run nor the agent sets."""


_AMOUNTS = (
    "limits.max_turns", "limits.max_total_tokens", "limits.max_duration", "limits.max_cost_usd", "max_tokens",
    "temperature", "top_p", "top_k", "thinking_budget", "request_timeout", "tool_output_budget", "persist_threshold",
    "context.max_context_tokens",
)  # fmt: skip
"""Options that are None or a number of at least 0."""


def resolve_behavior(behavior: Behavior | None, base: Behavior) -> Behavior:
    """Return the set fields of a behavior merged over `base`. Raises `ConfigurationError` if an option is invalid."""
    if not isinstance(behavior, Behavior | None):
        raise ConfigurationError(f"behavior must be a Behavior(...), not {behavior!r}")
    return _validate((behavior or Behavior()).over(base))


def _amount_problem(behavior: Behavior) -> str | None:
    """Return a sentence about the first amount that is negative, None without one."""
    for name in _AMOUNTS:
        value = attrgetter(name)(behavior)
        if value is not None and not value >= 0:  # NaN is not
            return f"{name} must be None or a number of at least 0, not {value!r}"
    return None


def _validate(behavior: Behavior) -> Behavior:
    """Return the behavior if all its options are valid. Raises `ConfigurationError`."""
    if problem := _amount_problem(behavior):
        raise ConfigurationError(problem)
    rules = [
        (behavior.max_iterations < 1, "max_iterations must be at least 1"),
        (behavior.batch_size < 1, "batch_size must be at least 1"),
        (behavior.tool_search_limit < 1, "tool_search_limit must be at least 1"),
        (behavior.max_handoffs < 0, "max_handoffs must not be negative"),
        (behavior.retry.max_retries < 0, "retry.max_retries must not be negative"),
        (behavior.context.keep_recent < 1, "context.keep_recent must be at least 1"),
        (behavior.repetition is not None and not 1 < behavior.repetition.warn_after <= behavior.repetition.stop_after,
         "repetition.warn_after must be at least 2 and at most repetition.stop_after"),
        (behavior.persist_threshold is not None and behavior.persist_dir is None,
         "persist_threshold needs persist_dir, the directory for large results"),
    ]  # fmt: skip
    for is_violated, message in rules:
        if is_violated:
            raise ConfigurationError(message)
    if behavior.output_schema is not None:
        check_schema(schema_of_output(behavior.output_schema))
    return behavior
