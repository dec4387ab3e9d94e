"""`session_name` continues the last session of that name, with the embedded agent as the agent."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.process.embedded_agent import PATIENCE, Sandbox

from agent_mux import AgentMux, AgentMuxError
from agent_mux.sessions.names import NamedSessions
from agent_mux.sessions.reservations import reserve

pytestmark = pytest.mark.anyio


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    monkeypatch.setenv("AMUX_AGENT_HOME", str(sandbox.home))
    return sandbox


@pytest.mark.slow
async def test_a_name_continues_its_session_in_its_directory(sandbox: Sandbox) -> None:
    model = sandbox.script({"text": "One."}, {"text": "Two."}, {"text": "Three."}, {"text": "Four."})
    (sandbox.root / "other").mkdir()

    async def run(name: str | None, directory: str = "work") -> str | None:
        cwd = sandbox.root / directory
        done = await mux.run(agent="native", prompt="hi", model=model, cwd=cwd, session_name=name)
        assert done.exit_reason == "completed", done.error
        return done.session_id

    async with AgentMux(config_dir=sandbox.root / "own") as mux:
        first = await run("review")
        assert first is not None
        assert await run("review") == first
        assert await run(None) != first
        assert await run("review") == first
        assert len({await run("second"), await run("review", "other"), first}) == 3
        running = mux.run(agent="native", prompt="hi", model=model, cwd=sandbox.work, session_name="review")
        with pytest.raises(AgentMuxError, match=f"session 'review' is used by run {running.run_id}"):
            await run("review")
        assert (await running).session_id == await run("review") == first
    names = NamedSessions(sandbox.root / "own")
    assert [one.name for one in names.list(directory=sandbox.work)] == ["review", "second"]


@pytest.mark.slow
async def test_a_lost_session_is_forgotten_before_the_result(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    model = sandbox.script({"text": "One."})
    names = NamedSessions(sandbox.root / "own")
    names.store("review", "native", sandbox.work, "gone")
    async with AgentMux(config_dir=sandbox.root / "own") as mux:
        lost = await mux.run(agent="native", prompt="hi", model=model, cwd=sandbox.work, session_name="review")
        assert lost.error is not None
        assert lost.error.code == "SESSION_NOT_FOUND"
        assert names.list() == ()
        assert "the session of the name 'review' is gone; the next run of it starts one" in caplog.text


@pytest.mark.slow
def test_the_command_line_continues_and_lists_names(sandbox: Sandbox) -> None:
    model = sandbox.script({"text": "One."}, {"text": "Two."}, {"text": "Three."}, {"text": "Four."})
    environment = {**sandbox.environment, "AGENT_MUX_CONFIG_DIR": str(sandbox.root / "own"), "PATH": os.environ["PATH"]}

    def amux(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "agent_mux", *words], capture_output=True, text=True, check=False,
            cwd=sandbox.work, env=environment, stdin=subprocess.DEVNULL, timeout=PATIENCE,
        )  # fmt: skip

    results = [
        json.loads(amux("run", "native", "hi", "-m", model, "-s", "review", "--json").stdout.splitlines()[-1])
        for _ in range(2)
    ]
    assert [one["exitReason"] for one in results] == ["completed", "completed"]
    assert results[0]["sessionId"] == results[1]["sessionId"]
    [name] = json.loads(amux("sessions", "names", "--cwd", ".", "--json").stdout)["data"]
    assert (name["name"], name["agent"], name["sessionId"]) == ("review", "native", results[0]["sessionId"])
    assert "review" in amux("sessions", "names").stdout
    session = f"native:{name['sessionId']}"
    assert json.loads(amux("sessions", "tag", session, "good", "--json").stdout)["data"]["tags"] == ["good"]
    [listed] = json.loads(amux("sessions", "list", "--tag", "good", "--json").stdout)["data"]
    assert listed["id"] == session
    assert amux("sessions", "tag", session, "--remove", "good").stdout == ""
    refused = amux("sessions", "tag", session, "--remove", "good")
    assert (refused.returncode, "a tag that `amux sessions tag` added" in refused.stderr) == (2, True)
    assert amux("sessions", "names", "--remove", "review").returncode == 0
    assert amux("sessions", "names", "--remove", "review").returncode == 8


@pytest.mark.slow
async def test_session_of_a_run_is_refused_to_another_run_until_its_end(sandbox: Sandbox) -> None:
    model = sandbox.script({"text": "One."}, {"text": "Two."}, {"text": "Three."}, {"text": "Four."})
    options = {"agent": "native", "prompt": "hi", "model": model, "cwd": sandbox.work}
    config = sandbox.root / "own"
    async with AgentMux(config_dir=config) as mux, AgentMux(config_dir=config) as other:
        talk = mux.run(**{**options, "interactive": True, "approval_mode": "prompt"})
        with anyio.fail_after(PATIENCE):
            async for event in talk:
                if event.type == "turn_end":
                    break
        session = talk.session_id
        assert session is not None
        with pytest.raises(
            AgentMuxError, match=f"the session {session} of native is used by run {talk.run_id}"
        ) as used:
            other.run(**options, session_id=session)
        assert used.value.code == "INVALID_STATE_TRANSITION"
        forked = await other.run(**options, fork_session_id=session)
        assert forked.session_id not in {None, session}
        await talk.close()
        await talk
        assert (await other.run(**options, session_id=session)).session_id == session
    assert list((config / "locks").glob("session-*")) == []


def test_reservations_of_one_key_exclude_each_other_and_leave_no_file(tmp_path: Path) -> None:
    def take() -> Callable[[], None]:
        return reserve(tmp_path, ("id", "a", "s"), "R1", lambda run: f"used by {run}")

    release = take()
    with pytest.raises(AgentMuxError, match="used by R1"):
        take()
    reserve(tmp_path, ("id", "a", "other"), "R2", str)()
    release()
    assert list((tmp_path / "locks").iterdir()) == []
    take()()
    (tmp_path / "locks").rmdir()
    (tmp_path / "locks").write_text("")
    with pytest.raises(AgentMuxError, match="cannot write"):
        take()


def test_reservation_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from agent_mux.sessions.reservations import reserve\n"
        "held = reserve(Path(sys.argv[1]), ('k',), 'R', str); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=PATIENCE)
    assert len(list((tmp_path / "locks").iterdir())) == 1
    reserve(tmp_path, ("k",), "R2", str)()
    assert list((tmp_path / "locks").iterdir()) == []
