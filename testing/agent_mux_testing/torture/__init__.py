"""The torture suite, `amux doctor --torture`: an agent that misbehaves on demand, and what must be true afterwards.

Each case ends within its bound, and leaves no process, descriptor, thread or temporary directory behind; no line of the
agent is lost. See docs/how-to/test-supervision.md.
"""

from agent_mux_testing.torture.case import Case, CaseOutcome, Circumstances
from agent_mux_testing.torture.cases import CASES
from agent_mux_testing.torture.run_case import RunCase
from agent_mux_testing.torture.suite import AT_TERMINAL, Row, case_names, run_torture, wanted_cases

__all__ = [
    "AT_TERMINAL",
    "CASES",
    "Case",
    "CaseOutcome",
    "Circumstances",
    "Row",
    "RunCase",
    "case_names",
    "run_torture",
    "wanted_cases",
]
