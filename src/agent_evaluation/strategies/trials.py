"""What strategies read and return."""

import msgspec

from agent_evaluation.outcomes import TrialOutcome


class TrialView(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy knows about a trial. None means unknown, which is never treated as 0."""

    id: str
    candidate: str
    outcome: TrialOutcome
    position: int = 0
    """Place in the plan, which breaks ties."""
    checks_passed: int = 0
    checks_total: int = 0
    tokens: int | None = None
    """Input and output."""
    cost_usd: float | None = None
    duration_ms: int | None = None
    model_calls: int | None = None
    text_length: int = 0
    """Characters of the last message."""
    changed_lines: int | None = None
    """Added and removed lines of the patch."""


class Selection(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a strategy selected, and why."""

    strategy: str
    winner: str | None
    """Id of a trial; None: nothing was selected, and `note` states why."""
    note: str
    """One sentence about the selection."""
    ranking: tuple[str, ...]
    """Ids of the eligible trials, the best first."""
    ties: tuple[tuple[str, ...], ...] = ()
    """Groups of trials that the strategy does not distinguish; the earlier in the plan ranks higher."""
    reasons: dict[str, str] = {}
    """Id of an eligible trial to the value by which it was ranked."""
    excluded: dict[str, str] = {}
    """Id of a trial that cannot win to the reason."""
