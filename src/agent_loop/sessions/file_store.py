"""Session store with one JSON file per session in a directory.

`{session_id}.json` is replaced atomically, and its modification time is the session's last activity, so that listing
reads no file. One process writes a session at a time; others get an error at once.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
from filelock import FileLock, Timeout

from agent_loop.errors import SessionError, SessionLockedError, SessionNotFoundError
from agent_loop.private_directories import make_private_directory
from agent_loop.sessions.session import Session
from agent_loop.sessions.store import check_session_id, decode_session, encode_session, read_agent_id

SUFFIX = ".json"
Outcome = TypeVar("Outcome")

PRIVATE_FILE = 0o600
MAX_MTIME_MS = 2**43
"""Latest modification time, about the year 2248, that most file systems can represent."""


class FileSessionStore:
    """The sessions of one directory, which is created with mode 0700 when the first session is saved."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._run_locks: dict[str, FileLock] = {}

    async def save(self, session: Session) -> None:
        """Store the session atomically.

        Raises `SessionLockedError` if another process is writing it, `SessionError` if it cannot be stored.
        """
        path = self._path(session.session_id)
        # Encode here instead of in the thread: the session must not change meanwhile.
        data, active = encode_session(session), session.last_active_at
        await _run_in_thread(lambda: self._write(session.session_id, path, data, active))

    async def load(self, session_id: str) -> Session:
        """Return the session. Raises `SessionNotFoundError`, or `SessionError` with the path of an invalid file."""
        path = self._path(session_id)
        return await _run_in_thread(lambda: self._read(session_id, path))

    async def list_ids(self) -> Sequence[str]:
        """Return all session ids, the last active one first, including invalid files."""
        return await _run_in_thread(self._list_ids)

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Return the sessions of one agent, the last active one first, without invalid files."""
        return await _run_in_thread(lambda: list(self._sessions_of(agent_id)))

    async def delete(self, session_id: str) -> None:
        """Delete the session. Raises `SessionNotFoundError`, or `SessionLockedError` if it is being written."""
        path = self._path(session_id)
        await _run_in_thread(lambda: self._remove(session_id, path))

    async def hold(self, session_id: str) -> None:
        """Lock the session for a run. Raises `SessionLockedError`. The lock ends with the process."""
        check_session_id(session_id)
        await _run_in_thread(lambda: self._hold(session_id))

    async def release(self, session_id: str) -> None:
        """Release the lock of a session."""
        lock = self._run_locks.pop(session_id, None)
        if lock is not None:
            await _run_in_thread(lock.release)

    def _hold(self, session_id: str) -> None:
        with _session_errors(f"session {session_id!r} cannot be held in {self.directory}"):
            make_private_directory(self.directory)
            # Not bound to a thread: another thread may release it.
            lock = FileLock(self.directory / f".{session_id}.run.lock", mode=PRIVATE_FILE, thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise SessionLockedError(session_id) from None
        self._run_locks[session_id] = lock

    def _path(self, session_id: str) -> Path:
        return self.directory / f"{check_session_id(session_id)}{SUFFIX}"

    def _write(self, session_id: str, path: Path, data: bytes, active: int) -> None:
        with _session_errors(f"session {session_id!r} cannot be written to {path}"):
            make_private_directory(self.directory)
            with self._write_lock(session_id):
                replace_file(path, data, modified_ms=active)

    def _read(self, session_id: str, path: Path) -> Session:
        with _session_errors(f"session {session_id!r} cannot be read from {path}"):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                raise SessionNotFoundError(session_id, str(self.directory)) from None
        session = decode_session(data, str(path))
        if session.session_id != session_id:
            raise SessionError(f"{path} contains session {session.session_id!r}; rename the file")
        return session

    def _list_ids(self) -> list[str]:
        with _session_errors(f"the sessions in {self.directory} cannot be listed"):
            try:
                entries = sorted(_session_files(self.directory), reverse=True)
            except FileNotFoundError:
                return []
        return [session_id for _, session_id in entries]

    def _sessions_of(self, agent_id: str) -> Iterator[Session]:
        for session_id in self._list_ids():
            path = self._path(session_id)
            try:
                if read_agent_id(path.read_bytes()) == agent_id:
                    yield self._read(session_id, path)
            except (OSError, SessionError):
                continue  # invalid, or deleted meanwhile; `load` reports the reason

    def _remove(self, session_id: str, path: Path) -> None:
        with _session_errors(f"session {session_id!r} cannot be removed from {self.directory}"):
            if not path.exists():
                raise SessionNotFoundError(session_id, str(self.directory))
            with self._write_lock(session_id):
                path.unlink(missing_ok=True)
                sync_directory(self.directory)

    @contextmanager
    def _write_lock(self, session_id: str) -> Iterator[None]:
        with locked(self.directory / f".{session_id}.lock") as acquired:
            if not acquired:
                raise SessionLockedError(session_id)
            yield


def _session_files(directory: Path) -> Iterator[tuple[int, str]]:
    """Yield the time of the last activity (nanoseconds) and the id of each session."""
    for path in directory.iterdir():
        session_id = path.name.removesuffix(SUFFIX)
        try:
            if session_id != path.name and check_session_id(session_id):
                yield path.stat().st_mtime_ns, session_id
        except (FileNotFoundError, SessionError):
            continue  # deleted meanwhile, or not a session file


@contextmanager
def _session_errors(message: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SessionError(f"{message}: {error.strerror or error}; check the directory and its permissions") from error


async def _run_in_thread(function: Callable[[], Outcome]) -> Outcome:
    return await anyio.to_thread.run_sync(function)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock the file for the block and yield True, or yield False at once if another process holds it.

    The lock ends with the process. The lock file is not deleted, because a deleted file could be locked by one process
    while another locks its successor.
    """
    lock = FileLock(path, mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def replace_file(path: Path, data: bytes, *, modified_ms: int) -> None:
    """Replace the file durably, with this modification time and mode 0600. Raises `OSError`.

    The caller excludes concurrent writers. The temporary file has a fixed name, so that a later write replaces one that
    a killed writer left behind.
    """
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        modified_ns = min(max(modified_ms, 0), MAX_MTIME_MS) * 1_000_000
        os.utime(descriptor, ns=(modified_ns, modified_ns))
        os.fsync(descriptor)
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Flush renames and removals in the directory to disk. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
