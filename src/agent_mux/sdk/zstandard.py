"""Read data that agents compressed with Zstandard, which Python contains from 3.14 on.

For older versions there is a package, the extra `zstd` of agent-mux.
"""

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import DEFAULT_BUFFER_SIZE, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from agent_mux.sdk.sessions import UnreadableSessionError

_MODULES = ("compression.zstd", "backports.zstd")
"""Modules with Zstandard: in Python from 3.14 on, and in a package for earlier versions."""
_MISSING = "it is compressed with Zstandard, which Python has from 3.14; else: pip install 'agent-mux[zstd]'"


def decompress(compressed: bytes, max_length: int) -> bytes:
    """Return the first `max_length` bytes of the data; nothing if it is damaged. Raises `UnreadableSessionError`."""
    try:
        data: bytes = _new_decompressor().decompress(compressed, max_length)
    except UnreadableSessionError:
        raise
    except Exception:  # noqa: BLE001  # each module has an exception of its own
        return b""
    return data


def open_compressed(path: Path) -> BinaryIO:
    """Open a compressed file. What follows damaged data is lost. Raises `UnreadableSessionError` and `OSError`."""
    decompressor = _new_decompressor()  # before the file: an object that is half made cannot be closed
    return BufferedReader(_DecompressedFile(path.open("rb"), decompressor))


class _DecompressedFile(RawIOBase):
    """Decompresses a file in bounded memory; all of its frames, as Codex appends them."""

    def __init__(self, file: BinaryIO, decompressor: Any) -> None:
        self._file = file
        self._decompressor = decompressor
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Skip to a later position from the start."""
        if whence != 0 or offset < self._position:
            raise OSError("compressed data can only be skipped")
        while self._position < offset and self.readinto(bytearray(min(offset - self._position, DEFAULT_BUFFER_SIZE))):
            pass
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decompressed bytes; 0 at the end."""
        data = b""
        while not data:
            if self._decompressor.eof:
                rest = self._decompressor.unused_data or self._file.read(DEFAULT_BUFFER_SIZE)
                if not rest:
                    return 0
                self._decompressor = _new_decompressor()
            else:
                rest = self._file.read(DEFAULT_BUFFER_SIZE) if self._decompressor.needs_input else b""
                if not rest and self._decompressor.needs_input:
                    return 0  # truncated
            try:
                data = self._decompressor.decompress(rest, len(buffer))
            except Exception as error:  # each module has an exception of its own
                if self._position:
                    return 0
                raise UnreadableSessionError("its compressed data is damaged") from error
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _new_decompressor() -> Any:
    new = find_decompressor()
    if new is None:
        raise UnreadableSessionError(_MISSING)
    return new()


@cache
def find_decompressor() -> Callable[[], Any] | None:
    """Return the class of Zstandard decompressors; None when this Python has none."""
    for name in _MODULES:
        with suppress(ImportError):
            found: Callable[[], Any] = importlib.import_module(name).ZstdDecompressor
            return found
    return None
