"""Sessions in a directory, one JSON file each. Source: phi-core, "FileSystemSessionStore".

`{session_id}.json` is replaced as a whole, and its modification time is when the session was last active: listing reads
no file. One process writes a session at a time, the second one is told at once.
"""
# DOC: """Writing one file so that it is there whole or not at all, whoever is killed when."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
from filelock import FileLock, Timeout

from agent_loop.errors import SessionError, SessionLockedError, SessionNotFoundError
from agent_loop.sessions.session import Session
from agent_loop.sessions.store import check_session_id, decode_session, encode_session, read_agent_id

SUFFIX = ".json"
Outcome = TypeVar("Outcome")


class FileSessionStore:
    """The sessions of one directory; it is made, for its owner alone, with the first one that is saved."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._run_locks: dict[str, FileLock] = {}

    async def save(self, session: Session) -> None:
        """Store it, whole or not at all.

        Raises `SessionLockedError` while somebody else writes it, `SessionError` where it cannot be stored.
        """
        path = self._path(session.session_id)
        # Here, not in the thread: nobody changes the session meanwhile.
        data, active = encode_session(session), session.last_active_at
        await _run_in_thread(lambda: self._write(session.session_id, path, data, active))

    async def load(self, session_id: str) -> Session:
        """The session. Raises `SessionNotFoundError`, `SessionError` with the name of the file where it is broken."""
        path = self._path(session_id)
        return await _run_in_thread(lambda: self._read(session_id, path))

    async def list_ids(self) -> Sequence[str]:
        """All there are, the last active one first; broken ones too."""
        return await _run_in_thread(self._list_ids)

    async def list_for_agent(self, agent_id: str) -> Sequence[Session]:
        """Those of one agent, the last active one first; broken ones are left out."""
        return await _run_in_thread(lambda: list(self._sessions_of(agent_id)))

    async def delete(self, session_id: str) -> None:
        """Remove it. Raises `SessionNotFoundError`, `SessionLockedError` while somebody writes it."""
        path = self._path(session_id)
        await _run_in_thread(lambda: self._remove(session_id, path))

    async def hold(self, session_id: str) -> None:
        """Keep other processes from going on with it. Raises `SessionLockedError`. A killed holder holds no more."""
        check_session_id(session_id)
        await _run_in_thread(lambda: self._hold(session_id))

    async def release(self, session_id: str) -> None:
        """Let others go on with it."""
        lock = self._run_locks.pop(session_id, None)
        if lock is not None:
            await _run_in_thread(lock.release)

    def _hold(self, session_id: str) -> None:
        with _session_errors(f"session {session_id!r} cannot be held in {self.directory}"):
            self.directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            # Not bound to a thread: whoever releases it may be another one.
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
            self.directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
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
            raise SessionError(f"{path} holds session {session.session_id!r}; give the file that name")
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
                continue  # broken, or deleted just now: `load` says what is wrong with it

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
    """When each was last active (nanoseconds), and its id."""
    for path in directory.iterdir():
        session_id = path.name.removesuffix(SUFFIX)
        try:
            if session_id != path.name and check_session_id(session_id):
                yield path.stat().st_mtime_ns, session_id
        except (FileNotFoundError, SessionError):
            continue  # removed just now, or no file of ours


@contextmanager
def _session_errors(message: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SessionError(f"{message}: {error.strerror or error}; check the directory and its rights") from error


async def _run_in_thread(function: Callable[[], Outcome]) -> Outcome:
    return await anyio.to_thread.run_sync(function)


PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
MAX_MTIME_MS = 2**43
"""Of a file's time, about the year 2248: what most file systems can say."""


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock file for the block: True; False at once where somebody else does. A killed holder holds no more.

    The lock file stays: taking it away would let two hold "the" lock, each on a file of its own.
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
    """Put the data in the place of the file: with its own time, for its owner alone, and on the disk. Raises `OSError`.

    One writer at a time: the unfinished file has a fixed name, so that one a killed writer left is written over.
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
    """What was renamed or removed in it is so on the disk. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
