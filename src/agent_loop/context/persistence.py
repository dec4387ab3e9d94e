"""Storage of large tool results on disk; the model gets a preview and the path of the file.

Results may contain secrets: directories have mode 0700, files 0600.
"""

import os
import re
import tempfile
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from agent_loop.messages import Image, Text
from agent_loop.private_directories import make_private_directory
from agent_loop.tools.tool import ToolResult

PREVIEW_BYTES = 2 * 1024
NAME_CHARACTERS = 48
"""Maximum characters of an id in a file name."""
END_TAG = "</persisted-output>"


class ResultPersistence:
    """Writes large results of one session. A result that cannot be written stays in the context."""

    def __init__(
        self,
        directory: Path,
        session_id: str,
        *,
        threshold: int,
        on_problem: Callable[[str], None],
        exclude_tools: Collection[str] = (),
    ) -> None:
        self._base = directory.absolute()
        self._session_id = session_id
        self._threshold = threshold
        self._on_problem = on_problem
        self._excluded = frozenset(exclude_tools)

    async def persist(self, call_id: str, tool: str, result: ToolResult) -> ToolResult:
        """Return the result with a stub instead of text above the threshold; images stay."""
        content = result.text.encode("utf-8", "backslashreplace")
        if tool in self._excluded or len(content) <= self._threshold:
            return result
        path = self._base / _safe_name(self._session_id) / f"{_safe_name(call_id)}-{self._digest(call_id, content)}.txt"
        try:
            await anyio.to_thread.run_sync(_write_private, path, content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._on_problem(
                f"the result of {tool} could not be stored in {path.parent}: {reason}; it stays in the context"
            )
            return result
        images = tuple(block for block in result.content if isinstance(block, Image))
        return msgspec.structs.replace(result, content=(Text(persisted_stub(tool, content, path)), *images))

    def _digest(self, call_id: str, content: bytes) -> str:
        """Return a unique part of the file name that cannot be guessed without the content."""
        return sha256(f"{self._session_id}\0{call_id}\0".encode("utf-8", "backslashreplace") + content).hexdigest()[:24]


def persisted_stub(tool: str, content: bytes, path: Path) -> str:
    """Return the stub: size, path and beginning of the result. The content cannot close the tag."""
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415  # it imports urllib.request

    preview = content[:PREVIEW_BYTES].decode("utf-8", "ignore").replace(END_TAG[:-1], "<\\/persisted-output")
    attributes = f'tool={quoteattr(tool)} bytes="{len(content)}" path={quoteattr(str(path))}'
    return f"<persisted-output {attributes}>\n{preview}\n{END_TAG}"


def _safe_name(identifier: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", identifier)[:NAME_CHARACTERS] or "_"


def _write_private(path: Path, content: bytes) -> None:
    """Write the file atomically. Raises `OSError`."""
    make_private_directory(path.parent.parent)
    _make_private(path.parent)
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)  # mkstemp: mode 0600, follows no link
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _make_private(directory: Path) -> None:
    """Create a directory for the current user only. Raises `OSError` for links and directories of other users."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink():
        raise NotADirectoryError(f"{directory} is a link")
    if hasattr(os, "getuid") and directory.lstat().st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to another user")
    directory.chmod(0o700)
