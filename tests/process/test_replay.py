"""Recordings replayed by a real process, through the real runner."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.adapters.replay.recorder import record

from agent_mux import AgentMux, AgentMuxError, Approve, Deny, ValidationError, encode_event, validate
from agent_mux.events import event_to_dict
from agent_mux.run.derivation import derive_events
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.codec import Exit
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_adapters.claude import ADAPTER as CLAUDE
from agent_mux_adapters.codex import ADAPTER as CODEX
from agent_mux_adapters.replay.argv import DEMO, HERE, PLAYER
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.fixtures import load_fixture

pytestmark = pytest.mark.anyio
FIXTURES = Path(__file__).parents[2] / "fixtures"
AT_ONCE = {"AMUX_REPLAY_SPEED": "0", "AMUX_REPLAY_PATIENCE": "5"}
BOUND = 60.0


def play(
    folder: Path, *, speed: str = "0", patience: str = "5", stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-I", "-S", str(PLAYER), str(folder), speed, patience]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=BOUND, check=False)


@pytest.mark.parametrize(
    "name",
    [
        "claude/2.1.330/tool_bash",
        "claude/2.1.330/bad_flag",
        "claude/2.1.330/orphan_sigkill",
        "claude/2.1.330/signal_sigterm_text",
        "claude/2.1.330/unicode_big_output",
        "claude/2.1.330/perm_parallel",
        "claude/2.1.330/interrupt_then_continue",
        "codex/0.169.0/as_sigint",
        "codex/0.169.0/signal_sighup_tool",
        "codex/0.169.0/as_approval_two",
        "codex/0.169.0/exec_big_output",
    ],
)
def test_player_reproduces_output_and_exit(name: str) -> None:
    fixture = load_fixture(FIXTURES / name)
    done = play(FIXTURES / name, stdin=b"".join(line + b"\n" for line in fixture.stdin))
    assert done.stdout == fixture.stdout
    assert done.stderr == fixture.stderr
    ended = Exit(code=done.returncode) if done.returncode >= 0 else Exit(signal=-done.returncode)
    assert ended == fixture.exit


@pytest.mark.slow
def test_player_follows_recorded_times_at_the_given_speed(tmp_path: Path) -> None:
    folder = record(tmp_path, [b"one", b"two"], times=[0.0, 0.4], wall_s=0.6)
    seconds = {}
    for speed in ("1", "4", "0"):
        begin = time.monotonic()
        assert play(folder, speed=speed).stdout == b"one\ntwo\n"
        seconds[speed] = time.monotonic() - begin
    assert seconds["1"] >= 0.6
    assert seconds["4"] >= 0.15


def test_output_is_written_when_due(tmp_path: Path) -> None:
    folder = record(tmp_path, [b"one", b"two"], times=[0.0, 60.0], wall_s=60.0)
    command = [sys.executable, "-I", "-S", str(PLAYER), str(folder), "1", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as player:
        assert player.stdout is not None
        assert os.read(player.stdout.fileno(), 100) == b"one\n"
        player.send_signal(signal.SIGINT)
        assert player.wait(BOUND) == -signal.SIGINT


PROMPT = b'{"type":"user","message":{}}'


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", b"standard input was closed; the recording expects prompt"),
        (
            b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}\n',
            b"this run sent: interrupt",
        ),
        (PROMPT + b"\n" + PROMPT + b"\n", b"this run sent: prompt; the recording expects nothing more"),
    ],
)
def test_deviating_run_ends_with_code_3(tmp_path: Path, sent: bytes, message: bytes) -> None:
    folder = record(tmp_path, [b"one"], stdin=[PROMPT], times=[0.1], wall_s=0.2)
    done = play(folder, stdin=sent, speed="1")
    assert done.returncode == 3
    assert done.stderr.startswith(b"replay: " + message)


def test_waiting_for_input_is_bounded(tmp_path: Path) -> None:
    folder = record(tmp_path, [b"one"], stdin=[PROMPT])
    command = [sys.executable, "-I", "-S", str(PLAYER), str(folder), "0", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as player:
        assert player.wait(BOUND) == 3
        assert player.stderr is not None
        assert player.stderr.read() == b"replay: no input within 0.1 s; the recording expects prompt\n"


# -- through the runner


@pytest.fixture
def mux(tmp_path: Path) -> AgentMux:
    return AgentMux(default_agent="replay", config_dir=tmp_path / "config", timeout=BOUND)


async def play_run(mux: AgentMux, prompt: str | Path, **options: Any) -> tuple[list[Any], RunHandle]:
    with anyio.fail_after(BOUND):
        async with mux:
            run = mux.run(prompt=str(prompt), **{"env": AT_ONCE, **options})
            events = [event async for event in run]
            await run
    assert validate(events) == []
    return events, run


def comparable(events: list[Any]) -> list[dict[str, Any]]:
    """Return the events without the fields that differ from run to run."""
    ours = ("runId", "agent", "timestamp", "durationMs", "interactionId", "cwd", "reason")
    return [{k: v for k, v in event_to_dict(event).items() if k not in ours} for event in events if event.type != "log"]


@pytest.mark.parametrize(
    "name",
    ["claude/2.1.330/tool_files", "claude/2.1.330/subagent_async", "codex/0.169.0/exec_fail", "codex/0.169.0/err_401"],
)
async def test_replayed_run_emits_the_events_of_the_recording(mux: AgentMux, name: str) -> None:
    events, _ = await play_run(mux, FIXTURES / name)
    recorded = Recorded(CLAUDE if name.startswith("claude") else CODEX, FIXTURES / name)
    assert {event.agent for event in events} == {"replay"}
    replayed, expected = comparable(events), comparable(list(recorded.played.events))
    assert [e["type"] for e in replayed] == [e["type"] for e in expected]
    naming_agent = {"auth_error", "error", "crash"}  # their texts name the agent
    assert [e for e in replayed if e["type"] not in naming_agent] == [
        e for e in expected if e["type"] not in naming_agent
    ]


async def test_demo_is_built_in(mux: AgentMux) -> None:
    events, run = await play_run(mux, DEMO)
    result = await run
    assert result.exit_reason == "completed"
    assert "HELLO, ADA!" in result.text
    assert result.ledger.unknown.total() == 0
    kinds = {event.type for event in events}
    assert kinds >= {"thinking_stop", "message_stop", "file_read", "file_patch", "file_create", "shell_exit", "cost"}
    assert load_fixture(HERE / DEMO).agent == "claude"


async def test_journal_is_replayed_like_its_run(mux: AgentMux, tmp_path: Path) -> None:
    first, run = await play_run(mux, FIXTURES / "claude/2.1.330/perm_allow", approval_mode="yolo")
    assert run.journal is not None
    again = AgentMux(default_agent="replay", config_dir=tmp_path / "again")
    second, _ = await play_run(again, run.journal, approval_mode="yolo")
    assert comparable(second) == comparable(first)


async def test_journal_of_a_replay_derives_the_same_events(mux: AgentMux) -> None:
    events, run = await play_run(mux, FIXTURES / "claude/2.1.330/perm_write_allow", approval_mode="yolo")
    header = run._runner.plan.header
    assert (header.codec.agent, header.codec.protocol) == ("claude", "stream-json-two-way")
    codec = AdapterRegistry().get(header.codec.agent).protocols[header.codec.protocol].codec
    assert run.journal is not None
    derived = [encode_event(event) for event in derive_events(Path(run.journal), codec)]
    assert derived == [encode_event(event) for event in events]


@pytest.mark.parametrize(
    ("name", "settled"),
    [
        ("claude/2.1.330/perm_allow", "approval_granted"),
        ("claude/2.1.330/perm_parallel", "approval_granted"),
        ("claude/2.1.330/perm_deny", "approval_denied"),
        ("codex/0.169.0/as_approval_accept", "approval_granted"),
        ("codex/0.169.0/as_approval_two", "approval_granted"),
        ("codex/0.169.0/as_mcp", "approval_granted"),
        ("codex/0.169.0/as_file_change_decline", "approval_denied"),
    ],
)
async def test_approvals_must_be_answered_as_recorded(mux: AgentMux, name: str, settled: str) -> None:
    answer = Approve() if settled == "approval_granted" else Deny("no")
    events, run = await play_run(mux, FIXTURES / name, on_approval_request=lambda _: answer)
    result = await run
    assert result.exit_reason == "completed", result.error
    kinds = [event.type for event in events]
    assert kinds.count("approval_request") == kinds.count(settled) >= 1


async def test_different_answer_ends_the_replay(mux: AgentMux) -> None:
    events, run = await play_run(mux, FIXTURES / "claude/2.1.330/perm_allow", approval_mode="deny")
    result = await run
    assert (result.exit_reason, result.exit_code) == ("crashed", 3)
    assert result.error is not None
    assert "the recording has: answer" in result.error.message
    assert "shell_start" not in [event.type for event in events]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude/2.1.330/stdin_multi_turn", "codex/0.169.0/as_multi_turn"])
async def test_further_prompts_are_replayed(mux: AgentMux, name: str) -> None:
    with anyio.fail_after(BOUND):
        async with mux:
            run = mux.run(prompt=str(FIXTURES / name), interactive=True, env=AT_ONCE)
            await run.continue_("the second")
            result = await run
    assert result.exit_reason == "completed", result.error
    assert result.turn_count == 2


async def test_interrupt_is_replayed(mux: AgentMux) -> None:
    with anyio.fail_after(BOUND):
        async with mux:
            prompt = str(FIXTURES / "claude/2.1.330/interrupt_text")
            run = mux.run(prompt=prompt, interactive=True, env=AT_ONCE)
            async for event in run:
                if event.type == "text_delta" and event.accumulated.endswith("here"):
                    await run.interrupt()
            result = await run
    assert result.exit_reason == "interrupted", result.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "/nonexistent"}, "/nonexistent does not exist"),
        ({"prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "fast"}}, "env.AMUX_REPLAY_SPEED"),
        ({"prompt": "demo", "env": {"AMUX_REPLAY_PATIENCE": "-1"}}, "env.AMUX_REPLAY_PATIENCE"),
        ({"prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "inf"}}, "env.AMUX_REPLAY_SPEED"),
    ],
)
async def test_invalid_replay_options_are_refused_before_the_start(
    mux: AgentMux, options: dict[str, Any], message: str
) -> None:
    async with mux:
        with pytest.raises(ValidationError, match=message):
            mux.run(**options)


async def test_recording_without_a_protocol_is_refused(mux: AgentMux) -> None:
    async with mux:
        with pytest.raises(AgentMuxError, match="claude has no protocol 'text'"):
            mux.run(prompt=str(FIXTURES / "claude/2.1.330/text_output"))


async def test_terminal_recording_is_refused(mux: AgentMux) -> None:
    async with mux:
        with pytest.raises(ValidationError, match="use `amux replay` for terminal recordings"):
            mux.run(prompt=str(FIXTURES / "terminal/scripted-1.0/text"))


def test_player_prints_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PLAYER), "--version"], capture_output=True, timeout=BOUND, check=True
    )
    assert done.stdout == b"agent-mux player 1.0.0\n"
    assert json.dumps(done.returncode) == "0"
