"""The launcher of a gateway and `openclaw acp`, run with a fake OpenClaw."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_mux_adapters.openclaw.argv import LAUNCHER
from agent_mux_adapters.openclaw.launching.sources import UsageDatabases, state_directory

PRETENDED = Path(__file__).with_name("pretended_openclaw.py")
BOUND = 60.0  # seconds
EXIT_FAILED = 70
LATE = 1 << 50  # milliseconds since the epoch: after any start
HELLO = {"jsonrpc": "2.0", "method": "hello"}
CHUNK = {"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk"}}}
CALL = {"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "toolCallId": "c"}}}
RESULT = {
    "method": "session/update",
    "params": {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}},
}


class Launched:
    """A running launcher, and the folder of its run."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self.folder = folder
        self.process = process

    def end(self, stdin: bytes = b"[]\n") -> tuple[int, list[Any], str]:
        """Write to its stdin, close it and wait. Return exit code, lines and stderr."""
        out, error = self.process.communicate(stdin, timeout=BOUND)
        lines = [json.loads(line) for line in out.splitlines() if line != b"[]"]
        return self.process.returncode, lines, error.decode()

    def seen(self, role: str) -> Any:
        """Return how the gateway or the bridge was started."""
        return json.loads((self.folder / f"{role}.json").read_bytes())

    def is_alive(self, role: str) -> bool:
        try:
            os.kill(self.seen(role)["pid"], 0)
        except ProcessLookupError:
            return False
        return True


@contextmanager
def launched(folder: Path, *flags: str, environ: dict[str, str] | None = None, **pretend: Any) -> Iterator[Launched]:
    program = folder / "openclaw"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PRETENDED} "$@"\n', "utf-8")
    program.chmod(0o755)
    (folder / "run.json").write_text('{"gateway":{"mode":"local"}}', "utf-8")
    (folder / "defaults.json").write_text("{}", "utf-8")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    argv = [
        sys.executable, *LAUNCHER, f"--openclaw={program}", f"--config={folder}/run.json",
        f"--users-config={home}/openclaw.json", *flags,
    ]  # fmt: skip
    spoken = {"PRETEND": json.dumps({"folder": str(folder), **pretend}), "HOME": str(home), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        argv,
        env={**spoken, **(environ or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    try:
        yield Launched(folder, process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_lines_and_the_exit_code_of_the_bridge_are_passed_on(tmp_path: Path) -> None:
    with launched(tmp_path, bridge_lines=[HELLO], acp_exits=5) as run:
        code, lines, error = run.end(b'{"id":1}\n')
        assert (code, lines[1:]) == (5, [HELLO, {"id": 1}])
        assert lines[0]["method"] == "_agent_mux/listening"
        assert "a line on stdout" in error  # the gateway's: ours belongs to the protocol
        assert not run.is_alive("gateway")


@pytest.mark.slow
def test_the_token_is_in_the_environment_and_never_in_argv(tmp_path: Path) -> None:
    with launched(tmp_path) as run:
        run.end()
        gateway, bridge = run.seen("gateway"), run.seen("acp")
    token = gateway["env"]["OPENCLAW_GATEWAY_TOKEN"]
    assert token == bridge["env"]["OPENCLAW_GATEWAY_TOKEN"]
    assert len(token) > 32
    assert token not in str([gateway["argv"], bridge["argv"]])
    assert "--bind=loopback" in gateway["argv"]


@pytest.mark.slow
def test_a_gateway_of_the_users_is_not_used(tmp_path: Path) -> None:
    users = {
        "OPENCLAW_GATEWAY_URL": "ws://far.example",
        "OPENCLAW_GATEWAY_PORT": "1",
        "OPENCLAW_GATEWAY_TOKEN": "theirs",
    }
    with launched(tmp_path, environ=users) as run:
        run.end()
        gateway, bridge = run.seen("gateway"), run.seen("acp")
    assert "OPENCLAW_GATEWAY_PORT" not in gateway["env"]
    assert bridge["env"]["OPENCLAW_GATEWAY_URL"].startswith("ws://127.0.0.1:")
    assert "theirs" not in bridge["env"].values()


@pytest.mark.slow
def test_the_gateway_starts_without_channels_and_schedules(tmp_path: Path) -> None:
    with launched(tmp_path) as run:
        run.end()
        env = run.seen("gateway")["env"]
    assert {env[f"OPENCLAW_SKIP_{what}"] for what in ("CHANNELS", "CRON")} == {"1"}


@pytest.mark.slow
def test_the_users_configuration_is_included_where_there_is_one(tmp_path: Path) -> None:
    users = tmp_path / "home" / "openclaw.json"
    for includes in (["./defaults.json"], ["./defaults.json", str(users)]):
        with launched(tmp_path) as run:
            run.end()
            env = run.seen("gateway")["env"]
        written = tmp_path / "openclaw.json"
        assert json.loads(written.read_bytes()) == {"$include": includes, "gateway": {"mode": "local"}}
        assert env["OPENCLAW_CONFIG_PATH"] == str(written)
        assert env["OPENCLAW_INCLUDE_ROOTS"] == str(users.parent)
        assert written.stat().st_mode & 0o777 == 0o600
        users.write_text("{}", "utf-8")


def test_a_state_directory_of_its_own_is_made(tmp_path: Path) -> None:
    with launched(tmp_path, f"--state-dir={tmp_path}/state") as run:
        run.end()
        assert run.seen("acp")["env"]["OPENCLAW_STATE_DIR"] == f"{tmp_path}/state"
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


# -- what the gateway writes down


def raw(kind: str, at: int, **more: Any) -> dict[str, Any]:
    return {"ts": 1795313575000 + at, "event": kind, "runId": "r", **more}


ANSWER = raw("assistant_message_end", 5, rawText="I run it.", rawThinking="")


@pytest.mark.slow
def test_an_answer_comes_before_the_call_it_makes_even_if_it_is_written_late(tmp_path: Path) -> None:
    begun = raw("assistant_text_stream", 1, evtType="text_start")
    with launched(tmp_path, bridge_lines=[{"raw": begun}, {"raw": ANSWER, "late": 0.15}, CALL, RESULT]) as run:
        _, lines, _ = run.end()
    assert lines[1:] == [{"jsonrpc": "2.0", "method": "_agent_mux/answer", "params": ANSWER}, CALL, RESULT]


@pytest.mark.slow
def test_a_thought_comes_before_the_text_even_if_it_is_written_late(tmp_path: Path) -> None:
    thought = raw("assistant_thinking_stream", 1, evtType="thinking_end", content="Hm.")
    text = raw("assistant_text_stream", 2, evtType="text_start")
    lines_ = [{"raw": thought, "late": 0.1}, {"raw": text, "late": 0.2}, CHUNK, CHUNK]
    with launched(tmp_path, bridge_lines=lines_) as run:
        _, lines, _ = run.end()
    assert lines[1:] == [{"jsonrpc": "2.0", "method": "_agent_mux/answer", "params": thought}, CHUNK, CHUNK]


@pytest.mark.slow
def test_an_answer_waits_for_the_results_of_the_one_before(tmp_path: Path) -> None:
    """The bridge is slow: the gateway has recorded two answers before the call of the first one."""
    later = raw("assistant_message_end", 9, rawText="Done.", rawThinking="")
    with launched(tmp_path, bridge_lines=[{"raw": ANSWER}, {"raw": later}, {"wait": 0.3}, CALL, RESULT, CHUNK]) as run:
        _, lines, _ = run.end()
    notifications = [{"jsonrpc": "2.0", "method": "_agent_mux/answer", "params": entry} for entry in (ANSWER, later)]
    assert lines[1:] == [notifications[0], CALL, RESULT, notifications[1], CHUNK]


@pytest.mark.slow
def test_a_call_whose_answer_is_never_written_down_is_passed_on(tmp_path: Path) -> None:
    with launched(tmp_path, bridge_lines=[CALL, RESULT]) as run:
        _, lines, _ = run.end()
    assert lines[1:] == [CALL, RESULT]


@pytest.mark.slow
def test_log_lines_about_the_run_are_passed_on(tmp_path: Path) -> None:
    failure = {"event": "embedded_run_agent_end", "isError": True}
    log = [json.dumps(failure, separators=(",", ":")), '{"event":"other"}', "no JSON"]
    with launched(tmp_path, log=log) as run:
        _, lines, error = run.end()
    assert {"jsonrpc": "2.0", "method": "_agent_mux/log", "params": failure} in lines
    assert len(lines) == 2
    assert all(line in error for line in log)


# -- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    with launched(tmp_path, bridge_lines=[HELLO]) as run:
        assert run.process.stdout is not None
        while b"hello" not in run.process.stdout.readline():
            pass
        run.process.send_signal(number)
        assert run.process.wait(BOUND) == 128 + number
        assert not run.is_alive("gateway")
        assert not run.is_alive("acp")


def test_a_gateway_that_cannot_begin_is_one_clear_line(tmp_path: Path) -> None:
    with launched(tmp_path, gateway_exits=78) as run:
        code, _, error = run.end(b"hello\n")
    (ours,) = [line for line in error.splitlines() if line.startswith("agent-mux: ")]
    assert code == EXIT_FAILED
    assert "exit code 78" in ours
    assert "OPENCLAW_STATE_DIR" in ours


@pytest.mark.slow
def test_a_gateway_that_dies_ends_the_run(tmp_path: Path) -> None:
    with launched(tmp_path, gateway_dies=True) as run:
        assert run.process.wait(BOUND) == EXIT_FAILED
        assert not run.is_alive("acp")


def test_killed_gateway_is_reported_as_its_signal(tmp_path: Path) -> None:
    with launched(tmp_path, bridge_lines=[HELLO]) as run:
        assert run.process.stdout is not None
        while b"hello" not in run.process.stdout.readline():
            pass
        os.kill(run.seen("gateway")["pid"], signal.SIGKILL)
        assert run.process.wait(BOUND) == 128 + signal.SIGKILL
        assert not run.is_alive("acp")


def test_the_launcher_exits_when_stdin_closes_before_it_is_ready(tmp_path: Path) -> None:
    with launched(tmp_path, gateway_is_deaf=True) as run:
        code, _, _ = run.end(b"")
        assert code == 0
    assert not (tmp_path / "acp.json").exists()


def test_a_program_that_cannot_be_started_is_one_clear_line(tmp_path: Path) -> None:
    with launched(tmp_path, f"--openclaw={tmp_path}/none") as run:
        code, _, error = run.end()
    assert code == EXIT_FAILED
    assert error == f"agent-mux: {tmp_path}/none could not be started: No such file or directory\n"


# -- what was used


def database(home: Path, *events: Any) -> Path:
    """Create the database of an agent with these events."""
    place = home / ".openclaw" / "agents" / "main" / "agent"
    place.mkdir(parents=True)
    path = place / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE trajectory_runtime_events (session_id, seq, event_json, created_at)")
        rows = [("s", number, text, at) for number, (at, text) in enumerate(events)]
        connection.executemany("INSERT INTO trajectory_runtime_events VALUES (?, ?, ?, ?)", rows)
    return path


def completed(at: int, used: Any) -> tuple[int, str]:
    event = {"type": "model.completed", "runId": "r", "data": {"usage": used, "stopReason": "length"}}
    return at, json.dumps(event, separators=(",", ":"))


@pytest.mark.slow
def test_usage_is_printed_once_before_the_end_of_the_prompt(tmp_path: Path) -> None:
    used = {"input": 100, "output": 12, "cost": {"total": 0.5}}
    database(tmp_path / "home", completed(5, {"input": 1}), completed(LATE, used))
    over = {"id": 3, "result": {"stopReason": "end_turn"}}
    with launched(tmp_path, bridge_lines=[over, over]) as run:
        _, lines, _ = run.end()
    assert lines[1:] == [
        {
            "jsonrpc": "2.0",
            "method": "_agent_mux/used",
            "params": {"runId": "r", "usage": used, "stopReason": "length"},
        },
        over,
        over,
    ]


@pytest.mark.parametrize("event", ['{"type":"model.completed"}', '"type":"model.completed"', '{"type":"other"}'])
def test_events_without_usage_are_skipped(tmp_path: Path, event: str) -> None:
    database(tmp_path, (LATE, event))
    assert UsageDatabases(tmp_path / ".openclaw", 0).read_new() == []


def test_an_unreadable_database_has_no_usage(tmp_path: Path) -> None:
    database(tmp_path).write_bytes(b"no database")
    assert UsageDatabases(tmp_path / ".openclaw", 0).read_new() == []


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"HOME": "/home/dev"}, "/home/dev/.openclaw"),
        ({"HOME": "/home/dev", "OPENCLAW_HOME": "/claw"}, "/claw/.openclaw"),
        ({"HOME": "/home/dev", "OPENCLAW_STATE_DIR": "/state"}, "/state"),
        ({"HOME": "/home/dev", "OPENCLAW_STATE_DIR": "~/state"}, "/home/dev/state"),
    ],
)
def test_where_the_state_is(environment: dict[str, str], place: str) -> None:
    assert state_directory(environment) == Path(place)
