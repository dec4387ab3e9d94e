"""The torture suite: an agent that misbehaves on demand, and what must be true afterwards. `amux doctor --torture`.

Each case has a bound, and after each nothing may be left: no process, no descriptor, no thread, no temp directory, no
line of the agent's. See docs/how-to/test-supervision.md.
"""

from agent_mux.testing.torture.case import Case, Circumstances, Outcome, RunCase
from agent_mux.testing.torture.cases import CASES
from agent_mux.testing.torture.suite import AT_TERMINAL, Row, case_names, run_torture, wanted_cases

__all__ = [
    "AT_TERMINAL",
    "CASES",
    "Case",
    "Circumstances",
    "Outcome",
    "Row",
    "RunCase",
    "case_names",
    "run_torture",
    "wanted_cases",
]
