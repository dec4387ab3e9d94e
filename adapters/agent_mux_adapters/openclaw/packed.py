"""Events that OpenClaw has compressed: those of more than a kilobyte, where it is worth while."""

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from sqlite3 import Row
from typing import Any

from agent_mux.native_json import load_object
from agent_mux.sessions.secrets import hidden
from agent_mux.sessions.store import UnreadableError

LONGEST = 4_194_304  # bytes: OpenClaw compresses no event that is longer
MODULES = ("compression.zstd", "backports.zstd")
"""Where Zstandard is: in Python from 3.14, and in a package for those before."""
NO_ZSTANDARD = "it is compressed with Zstandard, which Python has from 3.14; for this one: pip install backports.zstd"


def event_of(row: Row) -> dict[str, Any]:
    """The event of a row; an empty one where it is damaged."""
    plain = row["event_json"]
    event = hidden(_unpacked(row["event_zstd"])) if plain is None else plain.encode("utf-8", "replace")
    return load_object(event) or {}


def _unpacked(packed: bytes) -> bytes:
    decompressor = new_decompressor()
    if decompressor is None:
        raise UnreadableError(NO_ZSTANDARD)
    try:
        whole: bytes = decompressor().decompress(packed, LONGEST)
    except Exception:  # noqa: BLE001  # the package has an exception of its own: a damaged event is passed over
        return b""
    return whole


@cache
def new_decompressor() -> Callable[[], Any] | None:
    """What makes a decompressor; None where this Python has none."""
    for name in MODULES:
        with suppress(ImportError):
            found: Callable[[], Any] = importlib.import_module(name).ZstdDecompressor
            return found
    return None
