"""Strategies that select one trial of several: pure functions over plain values."""

from agent_evaluation.strategies.selecting import STRATEGIES, Strategy, select
from agent_evaluation.strategies.summaries import CandidateScore, summarize
from agent_evaluation.strategies.trials import Selection, TrialView

__all__ = [
    "STRATEGIES",
    "CandidateScore",
    "Selection",
    "Strategy",
    "TrialView",
    "select",
    "summarize",
]
