"""How an agent behaves: one value, with the seeds' names and defaults. `run` > agent > defaults, field by field.

Source: zidane, "Option Precedence"; phi-core, "ContextConfig", "ExecutionLimits", "RetryConfig", "QueueMode".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent_loop.errors import ConfigurationError
from agent_loop.json_schema import check_schema
from agent_loop.providers.provider import CacheSettings, ThinkingLevel

QueueMode = Literal["one_at_a_time", "all"]
ToolExecution = Literal["parallel", "sequential", "batched"]
CompactStrategy = Literal["off", "tiered", "tail"]
ExceedMode = Literal["block", "steer"]
OnExceed = Callable[[str, int], tuple[ExceedMode, str]]
"""How to go on, and the message (empty: a sentence of ours)."""

UNSET: Any = type("Unset", (), {"__repr__": lambda _: "UNSET", "__bool__": lambda _: False})()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits:
    """Hard caps of one run; None: no cap. Source: phi-core, "ExecutionLimits"."""

    max_turns: int | None = 50
    """Model calls."""
    max_total_tokens: int | None = 1_000_000
    """Input, output and cached ones, of all calls together."""
    max_duration: float | None = 600.0
    """Seconds."""
    max_cost_usd: float | None = None
    """Where the price is known."""


NO_LIMITS = ExecutionLimits(max_turns=None, max_total_tokens=None, max_duration=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """When a call is repeated that failed with a retryable error. Source: phi-core, "RetryConfig"."""

    max_retries: int = 3
    initial_delay: float = 1.0
    """Seconds."""
    multiplier: float = 2.0
    max_delay: float = 30.0
    """Seconds, before jitter."""
    jitter: float = 0.2
    """Share of the delay that chance may add or take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDecay:
    """Less thinking in later turns of a run. Source: zidane, `thinkingDecay`."""

    after_turn: int
    """The first turn (from 0) that gets less."""
    factor: float = 0.5
    floor: int = 0
    """Tokens that always remain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBudget:
    """How often a tool may be called in one run. Source: zidane, `toolBudgets`."""

    max_calls: int
    on_exceed: ExceedMode | OnExceed = "block"
    """Refuse the call, or let it through with a word to the model; or a function of (tool, calls so far) that says."""
    message: str = ""
    """Empty: a sentence of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """When and how the context is made smaller. Source: phi-core, "ContextConfig"; zidane, `compactStrategy`."""

    strategy: CompactStrategy = "tiered"
    max_context_tokens: int = 100_000
    """The whole budget, the system prompt included. The provider's window counts where it is smaller."""
    system_prompt_tokens: int = 4_000
    """Reserved for the system prompt."""
    keep_recent: int = 10
    """Messages at the end that stay in full."""
    keep_first: int = 2
    """Messages at the beginning that stay in full."""
    tool_output_max_lines: int = 50
    """What the first tier leaves of each tool output."""
    tail_threshold: int = 128 * 1024
    """Bytes of tool output in the context above which the tail strategy drops old outputs."""
    tail_keep_turns: int = 4
    """Turns whose outputs the tail strategy leaves alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """Everything about how a run goes. `Behavior(...)` of a run is laid over that of the agent, field by field."""

    max_iterations: int = UNSET
    """Turns after which the model is asked for a final summary, without tools. Source: loop spec, section 6."""
    limits: ExecutionLimits = UNSET
    """Caps after which the run just stops."""
    max_tokens: int | None = UNSET
    """Of one answer."""
    temperature: float | None = UNSET
    top_p: float | None = UNSET
    top_k: int | None = UNSET
    thinking: ThinkingLevel | None = UNSET
    thinking_budget: int | None = UNSET
    """Tokens; wins over the level."""
    thinking_decay: ThinkingDecay | Callable[[int, int], int] | None = UNSET
    """A taper, or a function of (turn from 0, base tokens). The result is kept within 0 and the base."""
    cache: CacheSettings = UNSET
    tool_choice: str = UNSET
    tool_execution: ToolExecution = UNSET
    batch_size: int = UNSET
    """Tools at once, with `tool_execution="batched"`."""
    output_schema: Mapping[str, Any] | None = UNSET
    """JSON Schema of the final answer."""
    retry: RetrySettings = UNSET
    context: ContextSettings = UNSET
    request_timeout: float | None = UNSET
    """Seconds for one call of the model."""
    steering_mode: QueueMode = UNSET
    follow_up_mode: QueueMode = UNSET
    tool_output_budget: int | None = UNSET
    """Bytes of tool output in one turn, above which the model is told to summarize."""
    tool_budgets: Mapping[str, ToolBudget] = UNSET
    dedup_reads: bool = UNSET
    """An identical second read of a file is answered with a stub."""
    dedup_tools: Mapping[str, Callable[[Mapping[str, Any]], str]] = UNSET
    """Tool -> hash of its arguments: a call like the last one is answered with its result. Never for side effects."""
    require_read_before_edit: bool = UNSET
    read_line_numbers: bool = UNSET
    elide_stale_reads: bool = UNSET
    """Older reads of a file that was changed since are replaced by a stub in what is sent."""
    persist_threshold: int | None = UNSET
    """Bytes of a tool result above which it goes to `persist_dir`, and the model gets a preview."""
    persist_dir: str | None = UNSET
    persist_exclude_tools: frozenset[str] = UNSET

    def over(self, base: "Behavior") -> "Behavior":
        """What this one says, and `base` where it says nothing."""
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
    dedup_reads=True,
    dedup_tools={},
    require_read_before_edit=False,
    read_line_numbers=True,
    elide_stale_reads=False,
    persist_threshold=None,
    persist_dir=None,
    persist_exclude_tools=frozenset(),
)
"""Where neither the run nor the agent says anything."""


def validate_behavior(behavior: Behavior) -> Behavior:
    """The behavior, when everything in it can be. Raises `ConfigurationError`."""
    rules = [
        (behavior.max_iterations < 1, "max_iterations must be at least 1"),
        (behavior.batch_size < 1, "batch_size must be at least 1"),
        (behavior.retry.max_retries < 0, "retry.max_retries must not be negative"),
        (behavior.context.keep_recent < 1, "context.keep_recent must be at least 1"),
        (behavior.persist_threshold is not None and behavior.persist_dir is None,
         "persist_threshold needs persist_dir, the directory for large results"),
    ]  # fmt: skip
    for is_violated, message in rules:
        if is_violated:
            raise ConfigurationError(message)
    if behavior.output_schema is not None:
        check_schema(behavior.output_schema)
    return behavior
