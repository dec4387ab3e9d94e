"""Commands that meet the end of a run: what reaches the control socket in the moment in which it closes."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from tests.process.control_client import PATIENCE, in_thread, socket_of
from tests.process.scripted import ScriptedMux

from agent_mux import AgentMux, AgentMuxError
from agent_mux._util.sanitize import to_json_bytes
from agent_mux.control import places
from agent_mux.control.client import read_status, send_command
from agent_mux.control.messages import PROTOCOL, VERSION, Hello, RunSnapshot

pytestmark = pytest.mark.anyio
RUN_ID = "01KAN5D5Q8W9S4H4D1V7T2X3YZ"
WAITS = "read(); emit(session='S'); emit(text=read()['send']); emit(done=True); drain()"
STAYS = "read(); emit(session='S'); emit(text='on it'); drain(); time.sleep(1000)"
Ending = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_RUNTIME_DIR", str(tmp_path / "runtime"))


def before_it_accepts(listener: socket.socket) -> None:
    select.select([listener], [], [], PATIENCE)  # the client has connected and waits for the first line


def before_the_hello(listener: socket.socket) -> None:
    listener.settimeout(PATIENCE)
    listener.accept()[0].close()


def before_it_reads_the_command(listener: socket.socket) -> None:
    listener.settimeout(PATIENCE)
    connection, _ = listener.accept()
    with connection:
        hello = Hello(PROTOCOL, VERSION, RunSnapshot(run_id=RUN_ID, agent="scripted", state="running"))
        connection.sendall(to_json_bytes(hello) + b"\n")
        connection.recv(1, socket.MSG_PEEK)


@contextmanager
def ending_run(config_dir: Path, end: Ending) -> Iterator[Path]:
    """A control socket whose run ends at a certain moment of a connection."""
    listener, path = places.listen(config_dir, RUN_ID)

    def serve() -> None:
        with listener:
            end(listener)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield path
    finally:
        thread.join(PATIENCE)
        places.remove(path)


@pytest.mark.parametrize("end", [before_it_accepts, before_the_hello, before_it_reads_the_command])
def test_command_to_a_run_that_ends_meanwhile_is_refused_as_one_to_a_run_that_is_over(
    tmp_path: Path, end: Ending
) -> None:
    with ending_run(tmp_path / "config", end) as path, pytest.raises(AgentMuxError) as error:
        send_command(path, {"type": "steer", "text": "more"}, timeout=PATIENCE)
    assert (error.value.code, error.value.message) == ("RUN_NOT_ACTIVE", f"run {RUN_ID} ended before it answered")


@pytest.mark.parametrize("end", [before_it_accepts, before_the_hello])
def test_run_that_ends_before_it_reports_its_state_has_none(tmp_path: Path, end: Ending) -> None:
    with ending_run(tmp_path / "config", end) as path:
        assert read_status(path) is None


async def test_abort_and_kill_are_allowed_after_the_end_and_other_commands_are_not(tmp_path: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client(STAYS) as mux:
        run = mux.run(prompt="hi", grace_period=0.1, timeout=PATIENCE)
        await socket_of(run, tmp_path / "config")
        runs = AgentMux(config_dir=tmp_path / "config", adapters=mux.adapters).runs
        active = await in_thread(runs.find, run.run_id)
        assert active.socket is not None
        await run.abort()
        with anyio.fail_after(PATIENCE):
            while Path(active.socket).exists():  # noqa: ASYNC110, ASYNC240  # nothing announces it
                await anyio.sleep(0.01)
        over = await in_thread(runs.find, run.run_id)
        for kind in ("abort", "kill"):
            answers = [await in_thread(runs.send, record, {"type": kind}) for record in (active, over)]
            assert [one["delivery"] for one in answers] == ["applied", "unneeded"]
            assert [one["run"]["state"] for one in answers] == ["aborted", "aborted"]
        for record in (active, over):
            with pytest.raises(AgentMuxError) as error:
                await in_thread(runs.send, record, {"type": "interrupt"})
            assert error.value.code == "RUN_NOT_ACTIVE"


async def test_abort_of_a_run_that_has_completed_meanwhile_is_unneeded(tmp_path: Path) -> None:
    async with ScriptedMux(tmp_path / "config").client(WAITS) as mux:
        run = mux.run(prompt="hi", interactive=True, timeout=PATIENCE)
        await socket_of(run, tmp_path / "config")
        runs = AgentMux(config_dir=tmp_path / "config", adapters=mux.adapters).runs
        active = await in_thread(runs.find, run.run_id)
        await run.send("bye")
        await run.close()
        assert (await run).exit_reason == "completed"
    assert (await in_thread(runs.send, active, {"type": "abort"}))["delivery"] == "unneeded"
