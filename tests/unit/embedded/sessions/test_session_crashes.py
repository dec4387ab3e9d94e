"""Killed and concurrent writers always leave a complete session on disk."""

import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.abc
import pytest

from agent_loop.errors import SessionLockedError
from agent_loop.messages import user
from agent_loop.sessions import FileSessionStore, LoopRecord, Session

pytestmark = pytest.mark.anyio
BOUND = 60.0
SIZE = 40_000
"""Characters of a message: a session that takes more than one write."""

WRITER = """
import sys
from pathlib import Path

import anyio

from agent_loop.errors import SessionLockedError
from agent_loop.messages import user
from agent_loop.sessions import FileSessionStore, LoopRecord, Session

async def main(directory, writer, rounds):
    store = FileSessionStore(Path(directory))
    for number in range(rounds):
        messages = [user(f"{writer} {number} ".ljust(SIZE, "x"))] * (1 + number % 3)
        try:
            await store.save(Session(session_id="s", agent_id="a", loops=[LoopRecord(loop_id="l", messages=messages)]))
            print("saved", number, flush=True)
        except SessionLockedError:
            print("locked", number, flush=True)

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
""".replace("SIZE", str(SIZE))


KILLED_AT_EACH_LINE = """
import os
import signal
import sys
from pathlib import Path

from agent_loop.sessions import Session, file_store
from agent_loop.sessions.store import decode_session, encode_session

def killed_at(line):
    def trace(frame, event, _):
        nonlocal line
        if frame.f_code.co_filename != file_store.__file__:
            return None
        line -= event == "line"
        if line == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace
    return trace

def session(agent):
    return Session(session_id="s", agent_id=agent)

path = Path(sys.argv[1]) / "s.json"
status = -1
line = 0
while status:
    line += 1
    file_store.replace_file(path, encode_session(session("old")), modified_ms=1)
    child = os.fork()
    if not child:
        sys.settrace(killed_at(line))
        with file_store.locked(path.with_name(".s.lock")) as ours:
            file_store.replace_file(path, encode_session(session("new")), modified_ms=2)
        sys.settrace(None)
        os._exit(0 if ours else 1)
    status = os.waitpid(child, 0)[1]
    print(decode_session(path.read_bytes(), str(path)).agent_id, os.WTERMSIG(status), flush=True)
"""


def writer(directory: Path, name: str, rounds: int) -> list[str]:
    return [sys.executable, "-c", WRITER, str(directory), name, str(rounds)]


def whole(session: Session) -> tuple[str, int]:
    """Return the writer and the round of a session. Fails for a torn or mixed one."""
    (loop,) = session.loops
    texts = {message.text for message in loop.messages}
    (text,) = texts
    name, number, *rest = text.split(" ", 2)
    assert len(text) == SIZE
    assert set(rest[0]) == {"x"}
    assert len(loop.messages) == 1 + int(number) % 3
    return name, int(number)


async def lines_until(process: anyio.abc.Process, count: int) -> int:
    """Read until the output has this number of lines and return the number read."""
    assert process.stdout is not None
    seen = 0
    async for chunk in process.stdout:
        seen += chunk.count(b"\n")
        if seen >= count:
            break
    return seen


@pytest.mark.parametrize("saved", [1, 2, 5, 9])
async def test_a_writer_killed_at_any_point_leaves_a_session_that_loads(tmp_path: Path, saved: int) -> None:
    with anyio.fail_after(BOUND):
        store = FileSessionStore(tmp_path)
        async with await anyio.open_process(writer(tmp_path, "w", 1_000_000)) as process:
            seen = await lines_until(process, saved)
            os.kill(process.pid, signal.SIGKILL)
            assert await process.wait() == -signal.SIGKILL

        name, number = whole(await store.load("s"))
        assert name == "w"
        assert number >= seen - 1
        await store.save(
            Session(session_id="s", agent_id="a", loops=[LoopRecord(loop_id="l", messages=[user("after")])])
        )
        assert (await store.load("s")).history() == [user("after")]


@pytest.mark.slow
async def test_a_writer_killed_at_each_line_leaves_the_old_session_or_the_new_one(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        process = await anyio.run_process([sys.executable, "-c", KILLED_AT_EACH_LINE, str(tmp_path)])
    outcomes = process.stdout.decode().splitlines()
    killed, last = outcomes[:-1], outcomes[-1]

    assert last == "new 0"
    assert killed == sorted(killed, key=lambda outcome: outcome != "old 9")
    assert killed.count("old 9") > 10
    assert killed.count("new 9") > 3


async def test_a_reader_never_sees_half_a_session(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        store = FileSessionStore(tmp_path)
        async with await anyio.open_process(writer(tmp_path, "w", 1_000_000)) as process:
            await lines_until(process, 1)
            rounds = [whole(await store.load("s"))[1] for _ in range(100)]
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()

        assert rounds == sorted(rounds)


@pytest.mark.slow
async def test_concurrent_writers_fail_or_write_completely(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        texts: dict[str, bytes] = {}

        async def write(name: str) -> None:
            texts[name] = (await anyio.run_process(writer(tmp_path, name, 30))).stdout

        async with anyio.create_task_group() as group:
            for name in ("one", "two"):
                group.start_soon(write, name)

        outcomes = [line.split()[0] for each in texts.values() for line in each.splitlines()]
        assert len(outcomes) == 60
        assert set(outcomes) <= {b"saved", b"locked"}
        name, number = whole(await FileSessionStore(tmp_path).load("s"))
        assert f"saved {number}".encode() in texts[name].splitlines()


async def test_one_of_two_writers_in_one_process_fails(tmp_path: Path) -> None:
    outcomes: list[str] = []
    store = FileSessionStore(tmp_path)

    async def write(text: str) -> None:
        record = LoopRecord(loop_id="l", messages=[user(text * SIZE)])
        try:
            await store.save(Session(session_id="s", agent_id="a", loops=[record]))
            outcomes.append(text)
        except SessionLockedError:
            outcomes.append("locked")

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(write, str(number))

        assert set(outcomes) - {"locked"}
        assert (await store.load("s")).history()[0].text[0] in outcomes
