"""Strategies that select one trial of several: pure functions over plain values."""

from agent_evaluation.strategies.selecting import STRATEGIES, Strategy, select
from agent_evaluation.strategies.summaries import CandidateSummary, summarize, wilson_interval
from agent_evaluation.strategies.trials import Selection, TrialView

__all__ = [
    "STRATEGIES",
    "CandidateSummary",
    "Selection",
    "Strategy",
    "TrialView",
    "select",
    "summarize",
    "wilson_interval",
]
