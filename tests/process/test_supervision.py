"""What the processes of a run inherit, how they are found, what is never signalled, and failures of the reaper."""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient
from ulid import ULID

from agent_mux.process import marker
from agent_mux.process.child import Child, spawn_child
from agent_mux.process.marker import ProcessIdentity, identify, kill_processes_of, mark, processes_of
from agent_mux.process.reaper import Reaper
from agent_mux.process.terminal import spawn_at_terminal
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.codec import TerminalSize
from agent_mux_testing.torture import census

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]
RUN, OTHER = str(ULID()), str(ULID())  # unique to this test process: another one may run the same test
WORKS = "read(); emit(text='ready'); time.sleep(1000)"


async def wait_until(condition: Any) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110  # no event reports it
            await anyio.sleep(0.01)


async def wait_for_text(run: RunHandle) -> None:
    async for event in run:
        if event.type == "text_delta":
            return
    raise AssertionError("no text arrived")


def start(place: str, code: str) -> Child:
    argv = [sys.executable, "-I", "-S", "-c", code]
    if place == "terminal":
        return spawn_at_terminal(argv, run_id=RUN, env={}, cwd="/", size=TerminalSize())
    return spawn_child(argv, run_id=RUN, env={}, cwd="/", stdin=True)


async def printed(child: Child) -> bytes:
    out: list[bytes] = []
    with anyio.fail_after(20):
        await child.read_stdout(out.append)
        await child.wait()
    child.close()
    return b"".join(out)


# -- inheritance


@pytest.mark.parametrize("place", ["pipe", "terminal"])
async def test_child_inherits_only_its_three_streams(tmp_path: Path, place: str) -> None:
    with (tmp_path / "mine").open("w") as mine:
        os.set_inheritable(mine.fileno(), True)
        child = start(
            place, "import os; print([n for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/'+n)])"
        )
        assert (await printed(child)).strip() == b"['0', '1', '2']"


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)


@pytest.mark.parametrize("place", ["pipe", "terminal"])
async def test_child_receives_signals_that_its_client_ignores(place: str) -> None:
    before = [(number, signal.getsignal(number)) for number in SIGNALS if number is not signal.SIGCHLD]
    for number, _ in before:
        signal.signal(number, signal.SIG_IGN)
    try:
        child = start(place, "print([l for l in open('/proc/self/status') if l[:6] in ('SigIgn', 'SigBlk')])")
        status = await printed(child)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    ignored, blocked = (int(word.split(b"\\n")[0], 16) for word in status.split(b"\\t")[1:])
    wrong = [number for number in SIGNALS if (ignored | blocked) >> (number - 1) & 1]
    # Python itself ignores SIGPIPE when it starts.
    assert wrong in ([], [signal.SIGPIPE])


@pytest.mark.parametrize("place", ["pipe", "terminal"])
async def test_child_leads_its_own_session(place: str) -> None:
    child = start(place, "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0), os.isatty(0))")
    assert (await printed(child)).split() == [b"True", b"True" if place == "terminal" else b"False"]


async def test_program_at_a_terminal_can_open_dev_tty() -> None:
    child = start("terminal", "print(open('/dev/tty').isatty())")
    assert (await printed(child)).strip() == b"True"


# -- process discovery


def sleeper(**arguments: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"], **arguments)


def end(*children: "subprocess.Popen[bytes]") -> None:
    for child in children:
        child.kill()
        child.wait(10)


def test_resource_limit_marks_a_process_and_all_its_children() -> None:
    shell = subprocess.Popen(
        ["sh", "-c", "read go; env -i setsid sh -c 'sleep 1000 & sleep 1000' & wait"], stdin=subprocess.PIPE
    )
    bystander = sleeper()
    try:
        assert mark(shell.pid, RUN)
        assert processes_of(RUN) == [shell.pid]
        shell.communicate(b"go\n", timeout=0.5)
    except subprocess.TimeoutExpired:
        found = processes_of(RUN)
        assert len(found) >= 3
        assert bystander.pid not in found
        assert processes_of(OTHER) == []
        assert kill_processes_of(RUN) >= 3
        assert processes_of(RUN) == []
        assert bystander.poll() is None
    finally:
        end(shell, bystander)


def test_nested_run_belongs_to_both_runs() -> None:
    outer = sleeper()
    try:
        assert mark(outer.pid, RUN)
        assert mark(outer.pid, OTHER)  # as an agent that starts agents does to its child
        assert processes_of(RUN) == processes_of(OTHER) == [outer.pid]
    finally:
        end(outer)


def test_existing_limit_is_not_changed() -> None:
    child = sleeper()
    try:
        resource.prlimit(child.pid, resource.RLIMIT_RTTIME, (1000, 1000))
        assert os.geteuid() == 0 or not mark(child.pid, RUN)
    finally:
        end(child)


def test_session_and_children_of_a_run_are_found_without_marks() -> None:
    leader = subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], start_new_session=True)
    try:
        process = identify(leader.pid)
        assert process is not None
        found: list[int] = []
        while len(found) < 3:
            found = processes_of(RUN, process)
        assert leader.pid in found
        assert kill_processes_of(RUN, leader=process) == 3
    finally:
        end(leader)


# -- processes that are never signalled


def test_reused_pid_is_another_process() -> None:
    stranger = sleeper(start_new_session=True)
    try:
        now = identify(stranger.pid)
        assert now is not None
        before = ProcessIdentity(stranger.pid, now.started - 1)  # the previous process with this pid
        assert processes_of(RUN, before) == []
        assert marker._signal(before, signal.SIGKILL)
        assert kill_processes_of(RUN, leader=before) == 0
        assert stranger.poll() is None
    finally:
        end(stranger)


@pytest.mark.parametrize("place", ["pipe", "terminal"])
async def test_pid_of_a_child_is_reserved_until_it_is_closed(place: str) -> None:
    child = start(place, "pass")
    with anyio.fail_after(20):
        assert await child.wait() == 0
    assert identify(child.pid) == child.process
    child.signal_group(signal.SIGKILL)  # has no target
    assert child.returncode == 0
    child.close()
    assert identify(child.pid) != child.process


@local_only(LocalOnly.INTERNALS)
async def test_external_waitpid_does_not_break_a_run(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client("read(); emit(text='x'); emit(done=True); drain(); time.sleep(0.3)") as mux:
            run = mux.run(prompt="hi")
            await wait_for_text(run)
            pid = run._runner.core.agent.child.pid  # type: ignore[union-attr]
            with suppress(ChildProcessError):  # the runner may have reaped it first
                await anyio.to_thread.run_sync(os.waitpid, pid, 0)
            result = await run
    assert result.exit_reason == "completed"


# -- the reaper


@local_only(LocalOnly.INTERNALS)
async def test_new_reaper_takes_over_the_runs_of_a_killed_one(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(WORKS) as mux:
            first = mux.run(prompt="hi", grace_period=0.2)
            await wait_for_text(first)
            killed = mux._reaper._process
            assert killed is not None
            killed.kill()
            killed.wait(10)
            second = mux.run(prompt="hi", grace_period=0.2)
            await wait_for_text(second)
            assert mux._reaper._process not in {None, killed}
            assert sorted(mux._reaper._runs) == sorted([first.run_id, second.run_id])
            await first.abort()
            assert list(mux._reaper._runs) == [second.run_id]
    assert processes_of(first.run_id) == processes_of(second.run_id) == []


@local_only(LocalOnly.INTERNALS)
async def test_stopped_reaper_blocks_no_run(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.process.reaper.REAPER_TIMEOUT", 0.1)
    with anyio.fail_after(30):
        async with make_client("read(); emit(done=True); drain()") as mux:
            await mux.run(prompt="hi")
            process = mux._reaper._process
            assert process is not None
            process.send_signal(signal.SIGSTOP)
            for _ in range(3000):
                mux._reaper._write("-unknown" * 10)
            assert mux._reaper._process is None
            assert (await mux.run(prompt="hi")).exit_reason == "completed"


@pytest.mark.slow
@local_only(LocalOnly.INTERNALS)
async def test_runs_that_wait_for_the_reaper_can_be_aborted(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import sys; sys.stdin.read()")
    monkeypatch.setattr("agent_mux.process.reaper.PROGRAM", slow)
    monkeypatch.setattr("agent_mux.process.reaper.REAPER_TIMEOUT", 1000)
    with anyio.fail_after(30):
        async with make_client(WORKS) as mux:
            runs = [mux.run(prompt="hi") for _ in range(2)]
            await wait_until(lambda: mux._reaper._process is not None)
            for run in runs:
                await run.abort()
                assert (await run).exit_reason == "aborted"
                assert run._runner.core.agent.child is None
            monkeypatch.setattr("agent_mux.process.reaper.REAPER_TIMEOUT", 0.1)
            run = mux.run(prompt="hi")
            await wait_for_text(run)


async def test_client_with_many_open_files_can_run_agents(make_client: MakeClient) -> None:
    many = 1100  # select() is limited to 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < many + 200:
        pytest.skip(f"no more than {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, many + 200), hard))
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(many)]
    try:
        with anyio.fail_after(30):
            async with make_client("read(); emit(done=True); drain()") as mux:
                assert (await mux.run(prompt="hi")).exit_reason == "completed"
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


CLIENT = """
import multiprocessing, os, sys, time, anyio
from pathlib import Path
from tests.process.scripted import ScriptedMux
async def main():
    async with ScriptedMux(Path(sys.argv[1])).client(%r) as mux:
        run = mux.run(prompt="hi")
        async for event in run:
            if event.type == "text_delta":
                break
        for seconds in (0, 1000):
            fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(seconds,), daemon=True)
            fork.start()
            if not seconds:
                fork.join()
        print(run.run_id, fork.pid, flush=True)
        await anyio.sleep(1000)
anyio.run(main)
"""


@pytest.mark.slow
async def test_fork_of_the_client_neither_triggers_nor_stops_the_reaper(tmp_path: Path) -> None:
    client = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-W", "ignore", "-c", CLIENT % WORKS, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    fork = 0
    try:
        assert client.stdout is not None
        run_id, pid = (await anyio.to_thread.run_sync(client.stdout.readline)).split()
        fork = int(pid)
        assert len(processes_of(run_id)) == 1  # one fork has ended, without effect
        client.kill()
        client.wait(10)
        await wait_until(lambda: not processes_of(run_id))
        os.kill(fork, 0)  # it is alive and holds the client's end of the pipe
    finally:
        if fork:
            os.kill(fork, signal.SIGKILL)
        client.kill()
        client.communicate()


def test_reaper_in_a_fork_does_nothing(tmp_path: Path) -> None:
    reaper = Reaper()
    reaper.watch(RUN, tmp_path)
    try:
        process = reaper._process
        assert process is not None
        fork = multiprocessing.get_context("fork").Process(target=_leave, args=(reaper,))
        fork.start()
        fork.join(20)
        assert fork.exitcode == 0
        assert process.poll() is None
        assert list(reaper._runs) == [RUN]
    finally:
        reaper.close()
    assert process.returncode == -signal.SIGKILL


def _leave(reaper: Reaper) -> None:
    reaper.unregister(RUN)
    reaper.close()


async def test_process_group_of_a_dead_client_is_ended_without_proc(tmp_path: Path) -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], start_new_session=True)  # noqa: ASYNC220
    try:
        reaper = Reaper()
        reaper.watch(RUN, tmp_path / "temp")
        await reaper.wait_until_ready()
        reaper.register_leader(RUN, child.pid, 0)  # as if its start time were unknown
        process, reaper._process = reaper._process, None
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # the client dies
        process.stdout.close()
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(process.wait)
        assert child.wait(10) == -signal.SIGKILL
    finally:
        end(child)


def test_census_finds_processes_by_argv_and_by_environment() -> None:
    by_argv = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)", "token-1"], env={})
    by_environment = sleeper(env={**os.environ, "TOKEN": "token-1"})
    try:
        found: list[int] = []
        while len(found) < 2:
            found = census.survivors("token-1")
        assert sorted(found) == sorted([by_argv.pid, by_environment.pid])
        census.end("token-1")
    finally:
        end(by_argv, by_environment)
    assert json.dumps(census.survivors("token-1")) == "[]"
