"""Evaluation of attempts at one task: outcomes, and strategies that select among them.

Pure functions over plain values. The package imports neither agent-mux nor the embedded agent, so that both use it.
"""

from agent_evaluation.intervals import wilson_interval
from agent_evaluation.outcomes import (
    CheckStatus,
    JudgedCheck,
    RunEnd,
    TrialCause,
    TrialOutcome,
    TrialVerdict,
    cause_of,
    judge,
)
from agent_evaluation.strategies import (
    STRATEGIES,
    CandidateScore,
    Selection,
    Strategy,
    TrialView,
    select,
    summarize,
)

__all__ = [
    "STRATEGIES",
    "CandidateScore",
    "CheckStatus",
    "JudgedCheck",
    "RunEnd",
    "Selection",
    "Strategy",
    "TrialCause",
    "TrialOutcome",
    "TrialVerdict",
    "TrialView",
    "cause_of",
    "judge",
    "select",
    "summarize",
    "wilson_interval",
]
