"""Sessions of OpenCode up to 1.1: one JSON file for each session, message and part, below `storage`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.session_files import find_session_files, redact_bytes
from agent_mux.sdk.sessions import FoundSession, SessionEntry, UnreadableSessionError
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.opencode.stored_rows import Fields, SessionSource

_MAX_SIZE = 1 << 28  # bytes of one file, which must be read as a whole
_FIRST = "project"
"""Directory of the sessions before 0.6."""


class _Session(Protocol):
    def rows(self, source: SessionSource, position: int) -> Iterator[tuple[int, Iterable[SessionEntry]]]:
        """Return the entries of the messages since a position."""
        ...

    def close(self) -> Iterable[SessionEntry]:
        """Return what follows from the end of the session."""
        ...


def find_session_files_of(data: Path) -> Iterator[FoundSession]:
    """Yield the files of sessions, with sub-agents. Their size and time include those of the messages."""
    for found in find_session_files(data / "storage" / "session", "*/*.json"):
        messages = list(find_session_files(data / "storage" / "message" / found.path.stem, "*.json"))
        size = found.size + sum(message.size for message in messages)
        yield found._replace(size=size, modified=max(one.modified for one in (found, *messages)))


def find_first_files(data: Path) -> Iterator[FoundSession]:
    """Yield the files of sessions in the first format, which is not read."""
    return find_session_files(data / _FIRST, "*/storage/session/info/*.json")


def is_first_format(path: Path) -> bool:
    """Return whether this is the file of a session in the first format."""
    return path.parent.name == "info"


class FilesReader:
    """Reads a session from its files; implements `Cursor`."""

    def __init__(self, path: Path, session: _Session) -> None:
        """`path` is the file of the session in `storage/session/<project>`."""
        self._files = _Files(path)
        self._session = session
        self._position = 0

    def read(self) -> Iterator[SessionEntry]:
        """Yield the entries of messages that were not read yet, see `Cursor.read`."""
        for position, entries in self._session.rows(self._files, self._position):
            self._position = max(self._position, position)
            yield from entries
        yield from self._session.close()


class _Files:
    """Reads sessions from files; implements `SessionSource`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._storage = path.parents[2]
        self._children: dict[str, None] = {}
        """The sessions of sub-agents that tool calls started."""

    def session(self, session_id: str) -> Fields | None:  # noqa: ARG002  # a file for each session
        session = _load(self._path)
        if session is None and self._path.is_file():
            raise UnreadableSessionError("it is not a complete JSON object")
        return session

    def messages(self, session_id: str, since: int) -> Iterable[tuple[str, int, Fields]]:
        stored = (_load(found.path) for found in self._in("message", session_id))
        found = [
            (text(message.get("id")), whole(mapping(message.get("time")).get("created")), message)
            for message in stored
            if message is not None
        ]
        return sorted((row for row in found if row[1] >= since), key=lambda row: (row[1], row[0]))

    def parts(self, message_id: str) -> Iterable[tuple[str, Fields]]:
        for found in sorted(self._in("part", message_id)):
            part = _load(found.path)
            if part is not None:
                child = text(mapping(mapping(part.get("state")).get("metadata")).get("sessionId"))
                if child:
                    self._children.setdefault(child)
                yield text(part.get("id")), part

    def messages_of_subagents(self, session_id: str) -> Iterable[tuple[str, Fields]]:
        """Return the messages of the sessions that the read parts started, and of those below them."""
        seen = {session_id}
        while self._children:
            child = next(iter(self._children))
            del self._children[child]
            if child in seen:
                continue
            seen.add(child)
            for message_id, _, info in self.messages(child, 0):
                yield message_id, info
                for _ in self.parts(message_id):  # they name further sub-agents
                    pass

    def _in(self, kind: str, name: str) -> Iterator[FoundSession]:
        # Names from the content of a file: they must not lead to another directory.
        return find_session_files(self._storage / kind / Path(name).name, "*.json") if name else iter(())


def _load(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None if it is gone, damaged or being written."""
    try:
        if path.stat().st_size > _MAX_SIZE:
            return None
        return load_object(redact_bytes(path.read_bytes()))
    except OSError:
        return None
