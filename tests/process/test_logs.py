"""The library logs the steps of its runs, to configured loggers only."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from structlog.testing import LogCapture
from tests.process.installed_command import Installed
from tests.process.scripted import MakeClient
from tests.unit.redaction.key_samples import SAMPLES

from agent_mux import Approve, RetryPolicy
from agent_mux._util.log_output import log_to
from agent_mux._util.logs import LOGGER
from agent_mux.redaction import redact_entry

pytestmark = pytest.mark.anyio

ASK = "read(); emit(session='S'); emit(ask='rm x'); emit(text=read()['answer']); emit(done=True); drain()"
CRASH = "sys.exit(3)"
STUCK = "read(); emit(session='S'); drain()"
BOUND = 120.0


@pytest.fixture
def captured() -> Iterator[LogCapture]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


async def carry_out(client: Any, **options: Any) -> str:
    with anyio.fail_after(BOUND):
        async with client as mux:
            run = mux.run(prompt="hi", **options)
            await run
    return str(run.run_id)


def event_names(entries: list[Any]) -> list[str]:
    return [entry["event"] for entry in entries]


async def test_run_is_logged_from_start_to_end(make_client: MakeClient, captured: LogCapture) -> None:
    run_id = await carry_out(make_client(ASK), on_approval_request=lambda _: Approve())
    assert event_names(captured.entries) == [
        "run_started", "spawned", "first_event", "interaction_pending", "interaction_answered", "run_ended",
    ]  # fmt: skip
    assert {(entry["run_id"], entry["agent"]) for entry in captured.entries} == {(run_id, "scripted")}
    started, spawned, first, pending, answered, ended = captured.entries
    assert (started["protocol"], Path(started["journal"]).name) == ("lines", f"{run_id}.journal")
    assert (spawned["program"], spawned["pid"] > 0) == (sys.executable, True)
    assert first["type"] == "session_start"
    assert (pending["kind"], pending["risk"], answered["answer"]) == ("approval", "medium", "granted")
    assert (ended["exit_reason"], ended["exit_code"], ended["turns"], ended["log_level"]) == ("completed", 0, 1, "info")
    assert "rm x" not in str(captured.entries)


@pytest.mark.slow
async def test_failures_are_logged(make_client: MakeClient, captured: LogCapture, tmp_path: Path) -> None:
    policy = RetryPolicy(max_attempts=2, base_delay=0.01, jitter=0)
    await carry_out(make_client(CRASH), retry_policy=policy)
    assert [name for name in event_names(captured.entries) if name != "first_event"] == [
        "run_started", "spawned", "retry", "spawned", "run_ended",
    ]  # fmt: skip
    assert (captured.entries[-1]["error"], captured.entries[-1]["log_level"]) == ("AGENT_CRASH", "warning")
    captured.entries.clear()
    await carry_out(make_client(STUCK), timeout=0.3)
    assert [entry["cause"] for entry in captured.entries if entry["event"] == "stopping"] == ["timeout"]
    captured.entries.clear()
    (tmp_path / "taken").touch()
    await carry_out(
        make_client(ASK, argv=("/not/there",)), journal=tmp_path / "taken", on_approval_request=lambda _: Approve()
    )
    assert [name for name in event_names(captured.entries) if name != "first_event"] == [
        "no_journal", "run_started", "not_started", "run_ended",
    ]  # fmt: skip


async def test_nothing_is_printed_without_configuration(
    make_client: MakeClient, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not structlog.is_configured()
    await carry_out(make_client(ASK), approval_mode="yolo")
    assert capfd.readouterr() == ("", "")


async def test_standard_logger_gets_readable_lines(make_client: MakeClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        run_id = await carry_out(make_client(ASK), approval_mode="yolo")
    assert caplog.messages[0].startswith(f"run_started run_id={run_id} agent=scripted protocol=lines")
    assert {record.name for record in caplog.records} == {LOGGER}


async def test_secrets_are_not_logged(make_client: MakeClient, captured: LogCapture) -> None:
    own = {"OWN_API_KEY": "own-k3y-of-the-run"}
    await carry_out(make_client(ASK), env=own, model="own-k3y-of-the-run " + SAMPLES["npm"], approval_mode="yolo")
    assert len(captured.entries) >= 4
    assert not [word for word in (*own.values(), SAMPLES["npm"]) if word in str(captured.entries)]


async def test_failing_logger_does_not_affect_the_run(make_client: MakeClient) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    structlog.configure(processors=[broken])
    try:
        with anyio.fail_after(BOUND):
            async with make_client(ASK) as mux:
                run = mux.run(prompt="hi", on_approval_request=lambda _: Approve())
                events = [event async for event in run]
                result = await run
    finally:
        structlog.reset_defaults()
    assert result.exit_reason == "completed"
    assert ["the log of this run ends here" in event.message for event in events if event.type == "debug"] == [True]


def test_processor_hides_secrets_by_name_and_by_pattern() -> None:
    entry = {"event": f"got {SAMPLES['npm']}", "api_key": "x", "tokens": 5, "max_tokens": "5", "run": None}
    hidden = redact_entry(None, "info", entry)
    assert SAMPLES["npm"] not in str(hidden)
    assert {name: hidden[name] for name in ("api_key", "tokens", "max_tokens", "run")} == {
        "api_key": "[hidden]", "tokens": 5, "max_tokens": "5", "run": None,
    }  # fmt: skip


def test_json_format_logs_json_lines() -> None:
    stream = io.StringIO()
    with log_to(stream, "json"):
        logging.getLogger(LOGGER).warning("of %s", "others")
    assert (line := json.loads(stream.getvalue()))["event"] == "of others"
    assert (line["level"], "timestamp" in line) == ("warning", True)
    assert logging.getLogger(LOGGER).level == logging.NOTSET


@pytest.mark.slow
def test_debug_flag_and_amux_log_print_the_log_on_stderr(tmp_path: Path) -> None:
    installed = Installed(tmp_path)
    done = installed.run("run", "scripted", "hi", "--debug", body=ASK)
    assert " info    run_started run_id=" in done.stderr
    assert "run_ended" in done.stderr
    assert "run_started" not in done.stdout
    done = installed.run("run", "scripted", "hi", body=ASK, AMUX_LOG="json")
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert event_names(lines)[0] == "run_started"
    done = installed.run("run", "scripted", "hi", "--debug", body=ASK, AMUX_LOG="off")
    assert "run_started" not in done.stderr
    done = installed.run("run", "scripted", "hi", body=ASK, AMUX_LOG="loud")
    assert (done.returncode, "AMUX_LOG is 'loud'" in done.stderr) == (2, True)
