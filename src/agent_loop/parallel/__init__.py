"""Parallel loops: several configurations answer one prompt over one context, and an evaluation selects one of them."""

from agent_loop.parallel.evaluation import Evaluation, EvaluationStrategy, LlmJudge, NamedStrategy
from agent_loop.parallel.outcomes import LoopCheck, LoopVariant, ParallelLoopOutcome, ParallelLoopResult
from agent_loop.parallel.running import run_parallel

__all__ = [
    "Evaluation",
    "EvaluationStrategy",
    "LlmJudge",
    "LoopCheck",
    "LoopVariant",
    "NamedStrategy",
    "ParallelLoopOutcome",
    "ParallelLoopResult",
    "run_parallel",
]
