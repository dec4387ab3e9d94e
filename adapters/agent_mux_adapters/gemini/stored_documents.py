"""Sessions of Gemini CLI that are one JSON object each: the format of up to 0.36."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.session_files import redact_bytes
from agent_mux.sdk.sessions import SessionEntry, UnreadableSessionError
from agent_mux_adapters._dialects.tolerant import rows, text

MAX_SIZE = 1 << 28  # bytes; the object must be read as a whole


class _Rows(Protocol):
    def read(self, row: Mapping[str, Any]) -> Iterable[SessionEntry]:
        """Return the entries of the header or of a message."""
        ...

    def close(self) -> Iterable[SessionEntry]:
        """Return what follows from the end of the file."""
        ...


class GeminiDocumentReader:
    """Reads a session from a JSON object, as if the header and each message were a line; implements `Cursor`."""

    def __init__(self, path: Path, stored: _Rows) -> None:
        self._path = path
        self._rows = stored
        self._seen: dict[str, bytes] = {}
        """The messages that were read, by id."""
        self._has_header = False

    def read(self) -> Iterator[SessionEntry]:
        """Yield the entries of messages that are new or were changed, see `Cursor.read`."""
        document = self._load()
        if document is None:
            return
        messages = rows(document.get("messages"))
        if not self._has_header:
            self._has_header = True
            yield from self._rows.read({name: value for name, value in document.items() if name != "messages"})
        for message in messages:
            encoded = msgspec.json.encode(message)
            if self._seen.get(text(message.get("id"))) != encoded:
                self._seen[text(message.get("id"))] = encoded
                yield from self._rows.read(message)
        yield from self._rows.close()

    def _load(self) -> dict[str, Any] | None:
        """Return the object; None while the CLI rewrites the file."""
        size = self._path.stat().st_size
        if size > MAX_SIZE:
            raise UnreadableSessionError(f"it is a JSON file of {size} bytes; agent-mux reads up to {MAX_SIZE}")
        document = load_object(redact_bytes(self._path.read_bytes()))
        if document is None and not self._has_header:
            raise UnreadableSessionError("it is not a complete JSON object")
        if document is not None and not isinstance(document.get("messages"), list):
            raise UnreadableSessionError("it has no list of messages")
        return document
