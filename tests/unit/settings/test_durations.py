"""Durations: seconds in Python and at the command line, a unit in files, milliseconds on the wire."""

import json
from pathlib import Path

import pytest

from agent_mux import AgentMux, Policy, RetryPolicy, RunOptions, ValidationError
from agent_mux._util.durations import format_duration, parse_duration
from agent_mux.sdk.options import validate_options
from agent_mux.sdk.policy import read_policy
from agent_mux.settings.config import read_config
from agent_mux.settings.durations import (
    MILLISECOND,
    SECOND,
    check_wire_durations,
    duration_warnings,
    in_milliseconds,
    with_units,
)
from agent_mux.settings.requests import request_from_json, request_to_json


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60.0), ("0", 0.0), ("1.5", 1.5), ("60s", 60.0), ("10m", 600.0), ("250ms", 0.25), ("1.5h", 5400.0),
        (" 2d ", 172800.0),
    ],
)  # fmt: skip
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "10 minutes", "5x", "1e3", "inf", "nan", "m", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (60, "60s"), (90, "90s"), (600, "10m"), (3600, "1h"), (0.25, "250ms"), (1.5, "1.5s"),
        (16.109, "16.109s"), (1e-05, "0.00001s"),
    ],
)  # fmt: skip
def test_a_written_duration_is_read_as_the_same_number(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds


def test_units_are_written_at_durations_and_nowhere_else() -> None:
    given = {
        "timeout": 60,
        "retryPolicy.baseDelay": 2,
        "retryPolicy": {"maxDelay": "30", "maxAttempts": 3, "jitter": 0.5},
        "agents": {"codex": {"inactivityTimeout": "10m"}},
        "agents.claude.gracePeriod": 1,
        "nativeOptions": {"timeout": 7, "retryPolicy": {"baseDelay": 1}},
        "outputSchema": {"timeout": 1},
        "maxModelCalls": 5,
        "waitForQuota": None,
        "approvalTimeout": True,
    }
    assert with_units(given, bare=SECOND) == given | {
        "timeout": "60s",
        "retryPolicy.baseDelay": "2s",
        "retryPolicy": {"maxDelay": "30s", "maxAttempts": 3, "jitter": 0.5},
        "agents.claude.gracePeriod": "1s",
    }
    assert with_units({"timeout": 60000}, bare=MILLISECOND) == {"timeout": "60s"}
    assert in_milliseconds({"timeout": "60s", "retryPolicy": {"baseDelay": 5}, "model": "60s"}) == {
        "timeout": 60000, "retryPolicy": {"baseDelay": 5}, "model": "60s",
    }  # fmt: skip


def test_a_number_in_a_file_keeps_its_meaning_and_warns(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({"timeout": 60, "gracePeriod": "2s", "agents": {"a": {"retryPolicy": {"baseDelay": 2000}}}}), "utf-8"
    )
    config = read_config(path)
    assert config.options == {"timeout": 0.06, "grace_period": 2.0}
    assert config.agents == {"a": {"retry_policy": {"base_delay": 2.0}}}
    assert config.warnings == (
        f'{path}: timeout is 60 without a unit, which means milliseconds; write "60ms"',
        f'{path}: agents.a.retryPolicy.baseDelay is 2000 without a unit, which means milliseconds; write "2s"',
    )
    assert duration_warnings(path, {"timeout": 0, "model": 3}) == ()


def test_a_run_reports_the_number_in_its_profile_and_configuration(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    profile = tmp_path / "profiles" / "fast.json"
    profile.write_text('{"timeout": 60000}', "utf-8")
    (tmp_path / "config.json").write_text('{"gracePeriod": 700}', "utf-8")
    mux = AgentMux(config_dir=tmp_path, project_config_dir=tmp_path / "none")
    resolved = mux.resolve_options(agent="replay", prompt="x", profile="fast")
    assert (resolved.options.timeout, resolved.options.grace_period) == (60.0, 0.7)
    assert [warning.partition(":")[0] for warning in resolved.warnings] == [str(profile), str(tmp_path / "config.json")]
    mux.profiles.set("fast", {"timeout": "10m"})
    assert profile.read_text("utf-8") == '{"timeout": "10m"}'
    assert mux.profiles.get("fast").content == {"timeout": 600_000}


def test_texts_without_a_unit_are_refused_in_files(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"timeout": "60"}', "utf-8")
    with pytest.raises(Exception, match=r"timeout: got '60'; allowed: a duration with a unit"):
        read_config(path)


def test_python_takes_seconds_and_units(tmp_path: Path) -> None:
    options = RunOptions(agent="a", prompt="p", timeout="10m", wait_for_quota="5h")  # type: ignore[arg-type]
    assert (options.timeout, options.wait_for_quota) == (600.0, 18000.0)
    assert RetryPolicy(base_delay="250ms").base_delay == 0.25  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="timeout: got 'soon'"):
        validate_options(RunOptions(agent="a", prompt="p", timeout="soon"))  # type: ignore[arg-type]
    mux = AgentMux(config_dir=tmp_path, timeout="90s")
    given = mux.resolve_options(
        agent="replay", prompt="x", retry_policy={"base_delay": "2s"}, policy={"timeout": "5m"}, grace_period=3
    ).options
    assert (given.timeout, given.grace_period) == (90.0, 3)
    assert given.retry_policy == RetryPolicy(base_delay=2.0)
    assert given.policy == Policy(timeout=300.0)


def test_the_wire_has_milliseconds_only() -> None:
    assert request_to_json({"agent": "a", "timeout": "10m", "retry_policy": {"base_delay": "2s"}}) == {
        "agent": "a", "timeout": 600_000, "retryPolicy": {"baseDelay": 2000},
    }  # fmt: skip
    with pytest.raises(ValidationError, match="timeout: got '10m'; allowed: a number of milliseconds"):
        request_from_json({"agent": "a", "prompt": "p", "timeout": "10m"})
    with pytest.raises(ValidationError, match=r"retryPolicy.baseDelay: got '2s'; allowed: a number of milliseconds"):
        check_wire_durations({"timeout": 5, "retryPolicy": {"baseDelay": "2s"}})


def test_a_policy_file_takes_units(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('timeout = "2m"\n', "utf-8")
    assert read_policy(path).timeout == 120.0
    path.write_text("timeout = 5\n", "utf-8")
    assert read_policy(path).timeout == 5.0
    path.write_text('timeout = "soon"\n', "utf-8")
    with pytest.raises(Exception, match="timeout"):
        read_policy(path)
