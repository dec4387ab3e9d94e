"""Values of parallel loops: the configuration of a loop, its outcome, and the result of all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent_evaluation import JudgedCheck, RunEnd, Selection, TrialOutcome, TrialView, judge
from agent_loop.agent_options import AgentChanges
from agent_loop.errors import ProviderError, ProviderErrorKind, error_text
from agent_loop.events import LoopLimit
from agent_loop.messages import Message
from agent_loop.results import RunResult
from agent_loop.usage import Usage

_REASONS: dict[LoopLimit, str] = {
    "iterations": "turn_limit",
    "turns": "turn_limit",
    "tokens": "budget",
    "cost": "budget",
    "duration": "timeout",
    "repetition": "failed",
    "output": "completed",
}
"""The exit reason of agent-mux for each limit; "output" is distinguished by its stop reason."""
_CODES: dict[ProviderErrorKind, str] = {
    "rate_limited": "RATE_LIMITED",
    "quota": "RATE_LIMITED",
    "auth": "AUTH_ERROR",
    "network": "NETWORK_ERROR",
    "filtered": "CONTENT_FILTERED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopVariant(AgentChanges):
    """One configuration of a parallel run; None keeps the agent's setting.

    `workspace` is for files of this loop alone, for example a git worktree. With one, the loop may write; without one,
    several loops share the agent's files and only read them.
    """

    name: str = ""
    """Its name in loop ids and results; empty: provider, model and thinking level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLoopOutcome:
    """The outcome of one loop of a parallel run."""

    index: int
    """Position of its configuration."""
    name: str
    loop_id: str
    result: RunResult
    original_context_len: int
    """Number of messages of the context that all loops started with."""
    messages: tuple[Message, ...]
    """The whole history of the loop: the original context, then what the loop added."""
    duration_ms: int
    variant: LoopVariant = field(default_factory=LoopVariant)
    checks: tuple[JudgedCheck, ...] = ()
    """The results of the checks, in their order."""

    def view(self) -> TrialView:
        """Return the outcome as the strategies of `agent_evaluation` read it."""
        return TrialView(
            id=self.loop_id,
            candidate=self.name,
            outcome=self.verdict(),
            position=self.index,
            checks_passed=sum(check.status == "pass" for check in self.checks),
            checks_total=len(self.checks),
            tokens=self.result.usage.total_tokens,
            cost_usd=self.result.usage.cost_usd,
            duration_ms=self.duration_ms,
            model_calls=self.result.turns,
            text_length=len(self.result.text),
        )

    def verdict(self) -> TrialOutcome:
        """Return the verdict on the loop, from its end and its checks."""
        result = self.result
        reason = str(result.status) if result.limit is None else _REASONS[result.limit]
        error = result.error
        end = RunEnd(
            exit_reason="failed" if reason == "rejected" else reason,
            error_code=_CODES.get(error.kind) if isinstance(error, ProviderError) else None,
            stop_reason="length" if result.limit == "output" else None,
        )
        detail = result.rejection or ("" if error is None else error_text(error))
        return judge(end, self.checks, detail)


LoopCheck = Callable[[ParallelLoopOutcome], Awaitable[bool]]
"""A check of an outcome, for example that the tests pass in its workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLoopResult:
    """The outcomes of a parallel run and the selection among them."""

    outcomes: tuple[ParallelLoopOutcome, ...]
    """In the order of the configurations."""
    selection: Selection
    """What the strategy selected and why; its ids are loop ids."""
    evaluation_usage: Usage
    """Usage of the model calls of a judge."""

    @property
    def selected(self) -> ParallelLoopOutcome | None:
        """The outcome that the session continues; None: nothing was selected, and `selection.note` states why."""
        return next((one for one in self.outcomes if one.loop_id == self.selection.winner), None)

    @property
    def usage(self) -> Usage:
        """Usage of all loops and of the evaluation."""
        total = self.evaluation_usage
        for outcome in self.outcomes:
            total += outcome.result.usage
        return total
