"""What the result and the last lines of a run show beside the closing message of the agent."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.installed_command import Installed
from tests.process.scripted import ScriptedMux

WRITE = {"tool_calls": [{"name": "write_file", "arguments": {"path": "probe.txt", "content": "one\ntwo\n"}}]}
SHELL = {"tool_calls": [{"name": "shell", "arguments": {"command": "echo more >> old.txt; rm gone.txt"}}]}
FAIL = {"tool_calls": [{"name": "read_file", "arguments": {"path": "never.txt"}}]}
DONE = {"text": "All done."}
CUT = {"text": "All d", "stop_reason": "length"}
FILTERED = {"error": {"kind": "filtered", "message": "the provider's content filter ended the answer"}}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    installed = Installed(tmp_path)
    work = tmp_path / "work"
    work.mkdir()

    def run_native(steps: list[dict[str, Any]], *flags: str) -> "subprocess.CompletedProcess[str]":
        script = tmp_path / "script.json"
        script.write_text(json.dumps({"steps": steps}))
        return installed.run(
            "run", "native", "hi", "--model", f"scripted:{script}", "--cwd", str(work), "--no-journal", *flags
        )

    return run_native


def result_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert result["type"] == "run_result", done.stderr
    return result


def test_denial_is_in_the_result(run: Run) -> None:
    result = result_of(run([WRITE, DONE], "--deny", "--json"))
    assert (result["exitReason"], result["toolCalls"], result["changedFiles"]) == ("completed", 1, [])
    [denial] = result["denials"]
    assert "probe.txt" in denial["detail"]


@pytest.mark.slow
def test_denial_is_in_the_last_lines(run: Run) -> None:
    shown = run([WRITE, DONE], "--deny")
    assert shown.returncode == 0
    assert "1 request denied" in shown.stderr
    assert "probe.txt" in shown.stderr
    assert "1 request denied" in run([WRITE, DONE], "--deny", "--quiet").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "steps", "flag"),
    [
        ("denied", [WRITE, DONE], "--deny"),
        ("tool_error", [FAIL, DONE], "--yolo"),
        ("no_change", [DONE], "--yolo"),
        ("length", [CUT], "--yolo"),
        ("filtered", [FILTERED], "--yolo"),
    ],
)
def test_condition_of_fail_on_is_exit_code_17_with_its_name(
    run: Run, condition: str, steps: list[dict[str, Any]], flag: str
) -> None:
    failed = run(steps, flag, "--fail-on", f"tool_error,{condition}" if condition == "length" else condition)
    assert failed.returncode == 17
    assert f"failed on: {condition}" in failed.stderr
    assert run(steps, flag).returncode == (1 if condition == "filtered" else 0)


@pytest.mark.slow
def test_conditions_that_do_not_hold_fail_nothing(run: Run) -> None:
    done = run([WRITE, DONE], "--yolo", "--json", "--fail-on", "denied,tool_error", "--fail-on", "no_change,length")
    assert (done.returncode, result_of(done)["changedFiles"]) == (
        0,
        [{"path": "probe.txt", "change": "created"}],
    )


def test_unknown_condition_is_a_usage_error(run: Run) -> None:
    done = run([DONE], "--fail-on", "denied,tired")
    assert done.returncode == 2
    assert "fail_on[1]: got 'tired'; allowed: denied, tool_error, no_change, length, filtered" in done.stderr


@pytest.mark.slow
def test_changes_of_the_shell_are_found_by_git(run: Run, tmp_path: Path) -> None:
    work = tmp_path / "work"
    git = shutil.which("git") or "git"
    for name in ("old.txt", "gone.txt"):
        (work / name).write_text("first\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]):
        subprocess.run([git, *words], cwd=work, check=True, timeout=60)
    compared = result_of(run([WRITE, SHELL, DONE], "--yolo", "--json"))
    assert compared["changedFiles"] == [
        {"path": "gone.txt", "change": "deleted", "added": 0, "removed": 1},
        {"path": "old.txt", "change": "modified", "added": 1, "removed": 0},
        {"path": "probe.txt", "change": "created", "added": 2, "removed": 0},
    ]
    (work / "probe.txt").unlink()
    (work / "gone.txt").write_text("again\n")
    reported = result_of(run([WRITE, SHELL, DONE], "--yolo", "--json", "--no-track-changes"))
    assert reported["changedFiles"] == [{"path": "probe.txt", "change": "created"}]


@pytest.mark.slow
def test_cut_answer_completes_with_a_warning(run: Run) -> None:
    done = run([CUT], "--yolo", "--json")
    assert (done.returncode, result_of(done)["stopReason"], result_of(done)["exitReason"]) == (0, "length", "completed")
    warnings = [line for line in map(json.loads, done.stdout.splitlines()) if line.get("level") == "warn"]
    assert ["the answer was cut" in warning["message"] for warning in warnings] == [True]
    assert "answer cut" in run([CUT], "--yolo").stderr


@pytest.mark.slow
def test_filtered_answer_is_failed(run: Run) -> None:
    done = run([FILTERED], "--yolo", "--json")
    assert (done.returncode, result_of(done)["error"]["code"]) == (1, "CONTENT_FILTERED")


def test_local_listing_has_the_conditions_that_a_run_failed_on(tmp_path: Path) -> None:
    body = "read(); emit(session='S'); emit(text='done'); emit(done=True); drain()"
    mux = ScriptedMux(tmp_path / "config").client(body)

    async def run() -> None:
        async with mux:
            await mux.run(prompt="hi", fail_on=["no_change", "denied"], cwd=tmp_path, track_changes=False)

    anyio.run(run)
    (record,) = mux.runs.list()
    assert (record.exit_reason, record.failed_on) == ("completed", ("no_change",))
