"""Who can reach the control socket of a run: prepared directories and names, other users, silent clients."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.control_client import PATIENCE, BareClient, close_all, in_thread, socket_of
from tests.process.scripted import ScriptedMux

from agent_mux.control import places
from agent_mux.control.peer import Peer, is_allowed

RUN = "01K0000000000000000000000A"
WAITS = "read(); emit(text='on it'); time.sleep(1000)"


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tmp_path / "runtime"
    monkeypatch.setenv("AGENT_MUX_RUNTIME_DIR", str(directory))
    yield directory
    close_all()


def test_a_link_in_place_of_the_runtime_directory_is_not_used(tmp_path: Path, runtime: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    runtime.symlink_to(target)
    with pytest.raises(OSError, match="is not a directory"):
        places.make_home(tmp_path)
    (target / places.home_name(tmp_path)).mkdir(mode=0o700)
    (target / places.home_name(tmp_path) / f"{RUN}.sock").touch()
    assert list(places.sockets(tmp_path)) == []


def test_a_directory_of_another_user_is_neither_used_nor_read(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / places.home_name(tmp_path)).mkdir(parents=True, mode=0o700)
    (runtime / places.home_name(tmp_path) / f"{RUN}.sock").touch()
    runtime.chmod(0o700)
    assert len(list(places.sockets(tmp_path))) == 1
    other = os.geteuid() + 1
    monkeypatch.setattr(places.os, "geteuid", lambda: other)
    assert list(places.sockets(tmp_path)) == []
    with pytest.raises(OSError, match="belongs to another user"):
        places.make_home(tmp_path)


def test_a_directory_that_others_can_enter_is_closed_before_it_is_used(tmp_path: Path, runtime: Path) -> None:
    runtime.mkdir()
    runtime.chmod(0o777)
    assert list(places.sockets(tmp_path)) == []
    places.make_home(tmp_path)
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o700


def test_a_prepared_link_with_the_name_of_the_socket_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for suffix in (".sock", ".sock.new"):
        (places.make_home(tmp_path) / f"{RUN}{suffix}").symlink_to(victim)
    listener, path = places.listen(tmp_path, RUN)
    with listener:
        assert stat.S_ISSOCK(path.lstat().st_mode)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert (victim.read_text(), stat.S_ISREG(victim.stat().st_mode)) == ("kept", True)


def test_only_the_same_user_and_root_are_allowed() -> None:
    own = os.geteuid()
    assert [is_allowed(Peer(1, uid)) for uid in (own, 0, own + 1)] == [True, True, False]


@pytest.mark.anyio
async def test_a_connected_process_of_another_user_receives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_mux.control.server.peer_of", lambda _: Peer(os.getpid(), os.geteuid() + 1))
    async with ScriptedMux(tmp_path / "config").client(WAITS) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE, grace_period=0.2)
        client = await in_thread(BareClient, await socket_of(run, tmp_path / "config"))
        assert client.hello == {}
        await run.abort()


@pytest.mark.anyio
async def test_a_silent_client_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.control.server.IDLE_TIMEOUT", 0.1)
    async with ScriptedMux(tmp_path / "config").client(WAITS) as mux:
        run = mux.run(prompt="hi", timeout=PATIENCE, grace_period=0.2)
        client = await in_thread(BareClient, await socket_of(run, tmp_path / "config"))
        assert client.hello["type"] == "hello"
        assert await in_thread(client.receive) == {}
        await run.abort()
