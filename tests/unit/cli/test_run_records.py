"""What `amux runs show` prints of a run."""

from typing import Any

import pytest

from agent_mux.cli.run_records import print_record, row_of


def shown(capsys: pytest.CaptureFixture[str], **result: Any) -> list[str]:
    print_record({"runId": "R", "agent": "claude", "exitReason": "completed", "result": result}, "answer")
    return capsys.readouterr().out.splitlines()


def test_a_completed_run_shows_what_it_did_not_do(capsys: pytest.CaptureFixture[str]) -> None:
    denied = [{"action": "Run", "detail": f"make {number}"} for number in range(4)]
    lines = shown(capsys, denials=denied, stopReason="length", failedOn=["denied", "length"])
    assert "denied        make 0; make 1; make 2; ..." in lines
    assert "answer cut    the model reached its limit of output tokens" in lines
    assert "failed on     denied, length" in lines


def test_a_run_without_shortcomings_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, denials=[], stopReason="end", text="done")
    assert lines == ["run           R", "agent         claude", "state         completed", "", "done"]


def test_listed_run_shows_the_conditions_that_it_failed_on() -> None:
    run = {"runId": "R", "agent": "claude", "exitReason": "completed"}
    assert row_of({**run, "failedOn": ["denied", "length"]})["state"] == "completed, failed on denied, length"
    assert row_of(run)["state"] == "completed"
