"""A run that a limit ends states the limit and where it was set."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_mux import AgentMux
from agent_mux.assembler.outcome import Ending, determine_verdict
from agent_mux.run.limits import describe_limits
from agent_mux.sdk.facts import Failure, TurnFailed, TurnLimitHit
from agent_mux.sdk.options import RunOptions

LIMITS = {
    "timeout": "60ms (timeout in /c/config.json)",
    "inactivity_timeout": "5s (--inactivity-timeout)",
    "max_model_calls": "3 (the run option max_model_calls)",
    "max_cost_usd": "$0.5 (--max-cost)",
    "max_tokens_total": "100 (the client's default max_tokens_total)",
}


def test_each_limit_has_its_value_and_its_source() -> None:
    options = RunOptions(
        agent="a", timeout=0.06, inactivity_timeout=90, max_model_calls=3, max_cost_usd=0.5, max_tokens_total=100
    )
    sources = {
        "timeout": "/home/me/.agent-mux/profiles/fast.json",
        "inactivity_timeout": "/home/me/.agent-mux/config.json",
        "max_model_calls": "the call",
        "max_cost_usd": "the client",
        "max_tokens_total": "--max-tokens-total",
    }
    assert describe_limits(options, sources) == {
        "timeout": "60ms (timeout in the profile 'fast', /home/me/.agent-mux/profiles/fast.json)",
        "inactivity_timeout": "90s (inactivityTimeout in /home/me/.agent-mux/config.json)",
        "max_model_calls": "3 (the run option max_model_calls)",
        "max_cost_usd": "$0.5 (the client's default max_cost_usd)",
        "max_tokens_total": "100 (--max-tokens-total)",
    }
    assert describe_limits(RunOptions(agent="a"), {}) == {}


@pytest.mark.parametrize(
    ("ending", "limits", "message"),
    [
        (Ending(cause="timeout"), LIMITS, "the run exceeded its time limit of 60ms (timeout in /c/config.json)"),
        (Ending(cause="timeout"), {}, "the run exceeded its time limit"),
        (Ending(cause="inactivity"), LIMITS, "a produced no output for 5s (--inactivity-timeout)"),
        (Ending(cause="inactivity"), {}, "a produced no output for too long"),
        (
            Ending(cause="turn_limit"),
            LIMITS,
            "the turn limit was reached: model calls: 3 (the run option max_model_calls)",
        ),
        (Ending(cause="turn_limit"), {}, "the turn limit was reached"),
    ],
)
def test_the_error_of_the_run_names_the_limit(ending: Ending, limits: Mapping[str, str], message: str) -> None:
    failure = determine_verdict(ending, None, turn_open=True, agent="a", limits=limits).failure
    assert failure is not None
    assert failure.message == message


def test_limits_that_the_agent_enforces_are_named_too() -> None:
    reached = determine_verdict(Ending(code=0), TurnLimitHit(3), turn_open=False, agent="a", limits=LIMITS).failure
    assert reached is not None
    assert reached.message.endswith("3 (the run option max_model_calls)")
    stopped = TurnFailed(Failure("BUDGET_EXCEEDED", "too expensive"))
    spent = determine_verdict(Ending(code=0), stopped, turn_open=False, agent="a", limits=LIMITS)
    assert spent.exit_reason == "budget"
    assert spent.failure is not None
    assert spent.failure.message == (
        "too expensive; cost: $0.5 (--max-cost); tokens: 100 (the client's default max_tokens_total)"
    )


@pytest.mark.parametrize("ending", [Ending(signal=9), Ending(code=137)])
def test_a_kill_without_a_sender_names_the_likely_cause(ending: Ending) -> None:
    failure = determine_verdict(ending, None, turn_open=True, agent="a").failure
    assert failure is not None
    assert "probably out of memory" in failure.message
    assert "dmesg" in failure.message
    other = determine_verdict(Ending(signal=15), None, turn_open=True, agent="a").failure
    assert other is not None
    assert "memory" not in other.message


def test_a_plan_has_the_limits_of_its_sources(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, project_config_dir=tmp_path / "none", max_concurrent_runs=1, timeout=9)
    mux.profiles.set("small", {"max_tokens_total": 10})
    plan = mux.plan(agent="replay", prompt="demo", profile="small", max_cost_usd=2, cwd=tmp_path)
    assert plan.header.stream.limits == {
        "timeout": "9s (the client's default timeout)",
        "max_cost_usd": "$2 (the run option max_cost_usd)",
        "max_tokens_total": f"10 (maxTokensTotal in the profile 'small', {tmp_path}/profiles/small.json)",
    }
