"""Lines longer than 1 MiB come in parts, where the client asked for that (omp, protocol 2): `rpc_chunk`."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from agent_mux_adapters._dialects.tolerant import text, whole


class Chunks:
    """The parts of the long line that is being received; the agent sends them one after the other."""

    def __init__(self) -> None:
        self._id = ""
        self._parts: list[bytes] = []

    def add(self, line: Mapping[str, Any]) -> bytes | None:
        """One part. Returns the line when it is complete."""
        if text(line.get("chunkId")) != self._id or whole(line.get("index")) != len(self._parts):
            self._id, self._parts = text(line.get("chunkId")), []
        try:
            self._parts.append(base64.b64decode(text(line.get("data"))))
        except (binascii.Error, ValueError):
            self._parts.append(b"")
        if len(self._parts) < whole(line.get("count")):
            return None
        parts, self._parts = self._parts, []
        return b"".join(parts)
