from pathlib import Path

import pytest

from agent_mux.compare.candidates import make_candidate
from agent_mux.compare.request import ComparisonRequest, shuffled, validate_request
from agent_mux.errors import ValidationError


def test_plan_has_the_names_of_variables_and_no_values(tmp_path: Path) -> None:
    candidate = make_candidate({"agent": "claude", "env": {"KEY": "sk-own"}})
    request = ComparisonRequest(
        prompt="fix it", candidates=(candidate,), cwd=tmp_path, options={"env": {"TOKEN": "sk-all"}, "timeout": 1.0}
    )
    plain = request.to_plain()
    assert (plain["env"], plain["candidateEnv"]) == (["TOKEN"], {"claude": ["KEY"]})
    assert plain["options"] == {"timeout": 1.0}
    assert "sk-" not in str(plain)


def test_order_depends_on_the_seed_alone() -> None:
    assert shuffled(["a", "b", "c"], 5) == shuffled(["c", "a", "b"], 5)
    assert {shuffled(["a", "b", "c"], seed) for seed in range(50)} > {("a", "b", "c"), ("c", "b", "a")}


def test_every_invalid_rule_is_named(tmp_path: Path) -> None:
    request = ComparisonRequest(prompt=" ", candidates=(), cwd=tmp_path / "missing", trials=0, jobs=0, attempts=11)
    with pytest.raises(ValidationError) as caught:
        validate_request(request)
    assert {problem.path for problem in caught.value.fields} == {"prompt", "trials", "jobs", "attempts", "cwd"}
