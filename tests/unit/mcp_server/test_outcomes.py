"""The result of a delegated run shows the calling model what its agent did not achieve."""

from agent_mux.mcp_server.views import MAX_DENIED, outcome_of
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import Denial, RunResult


def test_outcome_names_denials_failed_tools_cut_answers_and_conditions() -> None:
    denials = tuple(Denial("Run a command", f"make {number}\nall") for number in range(MAX_DENIED + 1))
    result = RunResult(
        run_id="R", agent="a", model=None, session_id=None, exit_reason="completed", exit_code=0, signal=None,
        duration_ms=1, turn_count=1, cost=None, token_usage=None, error=None, ledger=Ledger(), tool_errors=2,
        stop_reason="length", denials=denials, failed_on=("denied",),
    )  # fmt: skip
    outcome = outcome_of(result, 0, 100)
    assert (outcome.stop_reason, outcome.tool_errors, outcome.failed_on) == ("length", 2, ["denied"])
    assert len(outcome.denied) == MAX_DENIED
    assert outcome.denied[0] == "Run a command: make 0 all"
