"""What Schemathesis makes of the OpenAPI document, the service keeps to.

Some cases of each kind here; all of them, and many more, with `make schemathesis` (AMUX_SCHEMATHESIS=full, minutes).
"""

import os
from pathlib import Path

import pytest
from tests.service.fuzzing import STORE, Report, explore, fuzzed_server

from agent_mux.service.routes import health

# What Hypothesis thinks of its own cases (long, made at random) is no finding.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
IS_FULL = os.environ.get("AMUX_SCHEMATHESIS") == "full"
QUICK = 2  # cases for each operation
FULL = 25


def explored(directory: Path, monkeypatch: pytest.MonkeyPatch, *phases: str, examples: int) -> Report:
    monkeypatch.setenv("HOME", str(STORE))
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")
    monkeypatch.chdir(directory)
    with fuzzed_server(directory / "config") as server:
        report = explore(server.url, phases=phases, examples=examples)
        assert server.http.get("/ready").status_code == 200
    assert report.failures == [], "\n".join(report.failures)
    return report


@pytest.mark.slow
def test_fuzzing_finds_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = explored(tmp_path, monkeypatch, "examples", "fuzzing", "stateful", examples=FULL if IS_FULL else QUICK)
    assert report.statuses["POST /v1/runs"][201], "no run was started"
    assert report.statuses["PUT /v1/profiles/{name}"][200], "no profile was written"
    assert report.statuses["POST /v1/comparisons"][201], "no comparison was started"
    assert len(report.statuses) > 40


@pytest.mark.skipif(not IS_FULL, reason="takes a minute: make schemathesis")
def test_fuzzing_at_the_limits_finds_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = explored(tmp_path, monkeypatch, "coverage", examples=FULL)
    assert report.statuses["POST /v1/runs"][422] > 100


@pytest.mark.slow
def test_it_would_find_a_wrong_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "__version__", 3)
    monkeypatch.setenv("HOME", str(tmp_path))
    with fuzzed_server(tmp_path / "config") as server:
        report = explore(server.url, phases=("fuzzing",), examples=1, only="/health")
    assert any("GET /health" in failure for failure in report.failures)
