"""Sessions in files: private, atomic, and only inside of their directory."""

import json
import os
import stat
from pathlib import Path

import anyio
import pytest

from agent_loop.errors import SessionError, SessionLockedError, SessionNotFoundError
from agent_loop.messages import user
from agent_loop.sessions import FileSessionStore, LoopRecord, Session
from agent_loop.sessions.file_store import locked

pytestmark = pytest.mark.anyio
BOUND = 60.0


def session(name: str = "s", text: str = "u") -> Session:
    return Session(session_id=name, agent_id="agent", loops=[LoopRecord(loop_id="l", messages=[user(text)])])


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_each_session_is_one_json_file_with_its_format(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        await FileSessionStore(tmp_path).save(session())
        written = json.loads((tmp_path / "s.json").read_text("utf-8"))

    assert written["format"] == 1
    assert written["session"]["session_id"] == "s"


async def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with anyio.fail_after(BOUND):
            await FileSessionStore(tmp_path / "deep" / "sessions").save(session())
    finally:
        os.umask(before)
    directory = tmp_path / "deep" / "sessions"

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "../x", "a/b", "/etc/passwd", "a\x00b", "a\nb", "x" * 201, "ä", "a b", "-rf"]
)
async def test_ids_never_leave_the_directory(tmp_path: Path, name: str) -> None:
    store = FileSessionStore(tmp_path / "sessions")
    with anyio.fail_after(BOUND):
        for use in (store.load, store.delete):
            with pytest.raises(SessionError, match="is not a valid session id: use up to 200 letters"):
                await use(name)
        with pytest.raises(SessionError, match="is not a valid session id"):
            await store.save(session(name))

    assert names(tmp_path) == []


async def test_concurrent_writer_fails_at_once(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        await store.save(session(text="first"))
        with locked(tmp_path / ".s.lock") as ours:
            assert ours
            with pytest.raises(SessionLockedError, match="is being written by another process"):
                await store.save(session(text="second"))
            with pytest.raises(SessionLockedError):
                await store.delete("s")
            await store.save(session("other"))
            assert await store.load("s") == session(text="first")
        await store.save(session(text="second"))

        assert await store.load("s") == session(text="second")


BROKEN = {
    "empty": (b"", "is not a stored session"),
    "torn": (b'{"format": 1, "session": {"session_id": "s"', "is not a stored session"),
    "no JSON": (b"\xff\xfe", "is not a stored session"),
    "another thing": (b"[]", "is not a stored session"),
    "no session": (b'{"format": 1, "session": {}}', "session_id"),
    "deep": (b'{"format": 1, "session": ' + b"[" * 9000, "is not a stored session"),
    "an odd value": (
        b'{"format": 1, "session": {"session_id": "s", "agent_id": "a", "state": {"todos": [{"status": "odd"}]}}}',
        "todos",
    ),
    "newer": (b'{"format": 2, "session": {}}', "was written by a newer version \\(format 2\\)"),
    "of another name": (b'{"format": 1, "session": {"session_id": "t", "agent_id": "agent"}}', "contains session 't'"),
    "a circle": (
        b'{"format":1,"session":{"session_id":"s","agent_id":"agent","loops":[{"loop_id":"a","parent_loop_id":"a"}]}}',
        "precedes its parent",
    ),
}


@pytest.mark.parametrize(("data", "words"), BROKEN.values(), ids=BROKEN)
async def test_broken_files_are_named_and_never_break_listing(tmp_path: Path, data: bytes, words: str) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        await store.save(session("good"))
        (tmp_path / "s.json").write_bytes(data)
        with pytest.raises(SessionError, match=words) as caught:
            await store.load("s")

        assert str(tmp_path / "s.json") in str(caught.value)
        assert sorted(await store.list_ids()) == ["good", "s"]
        assert await store.list_for_agent("agent") == [session("good")]


async def test_fields_of_a_newer_version_are_skipped(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        await store.save(session())
        written = json.loads((tmp_path / "s.json").read_text("utf-8"))
        written |= {"signed_by": "me"}
        written["session"]["mood"] = "good"
        written["session"]["loops"][0] |= {"weather": "fine"}
        written["session"]["loops"][0]["messages"][0]["colour"] = "red"
        (tmp_path / "s.json").write_text(json.dumps(written), "utf-8")

        assert await store.load("s") == session()


async def test_other_files_of_the_directory_are_no_sessions(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        await store.save(session())
        for name in ("notes.txt", ".s.json.tmp", "a b.json", ".json"):
            (tmp_path / name).write_text("{}", "utf-8")

        assert await store.list_ids() == ["s"]


async def test_what_a_killed_writer_left_is_written_over(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        (tmp_path / ".s.json.tmp").write_text('{"format": 1, "sess', "utf-8")
        (tmp_path / ".s.lock").touch()
        await store.save(session())

        assert await store.load("s") == session()
        assert names(tmp_path) == [".s.lock", "s.json"]


@pytest.mark.parametrize("active", [-5, 2**70])
async def test_times_that_no_file_can_have_do_no_harm(tmp_path: Path, active: int) -> None:
    store = FileSessionStore(tmp_path)
    with anyio.fail_after(BOUND):
        await store.save(Session(session_id="s", agent_id="agent", last_active_at=active))

        assert (await store.load("s")).last_active_at == active


async def test_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = FileSessionStore(tmp_path / "file" / "sessions")
    with anyio.fail_after(BOUND):
        with pytest.raises(SessionError, match=r"cannot be written to .*Not a directory; check the directory"):
            await store.save(session())
        with pytest.raises(SessionError, match="Not a directory"):
            await store.load("s")
        with pytest.raises(SessionError, match="Not a directory"):
            await store.list_ids()


async def test_a_directory_that_is_not_there_holds_no_sessions(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "sessions")
    with anyio.fail_after(BOUND):
        assert await store.list_ids() == []
        assert await store.list_for_agent("agent") == []
        with pytest.raises(SessionNotFoundError, match="sessions"):
            await store.load("s")
        with pytest.raises(SessionNotFoundError):
            await store.delete("s")
    assert not store.directory.exists()
