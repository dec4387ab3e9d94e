"""What the model has seen of each file: for `dedup_reads` and `require_read_before_edit`. Source: zidane."""

from hashlib import sha256

from agent_loop.errors import ToolError
from agent_loop.state import AgentState, ReadMark
from agent_loop.workspace import FileContent


def hash_of(data: bytes) -> str:
    """SHA-256, as hexadecimal digits."""
    return sha256(data).hexdigest()


def mark_of(content: FileContent, offset: int, limit: int, max_bytes: int) -> ReadMark:
    """What is remembered of a read."""
    return ReadMark(hash_of(content.data), offset, limit, max_bytes, content.modified_ns)


def is_repeated(state: AgentState, name: str, mark: ReadMark) -> bool:
    """The same part of the same content was read last. When the file was touched does not matter."""
    last = state.reads.get(name)
    return last is not None and _slice(last) == _slice(mark)


def note_read(state: AgentState, name: str, mark: ReadMark) -> None:
    """This was seen."""
    state.reads[name] = mark


def note_change(state: AgentState, name: str, data: bytes) -> None:
    """The agent itself made the file like this: it may edit on. No read has offset 0, so the next one shows it."""
    digest = hash_of(data)
    state.files[name] = digest
    state.reads[name] = ReadMark(digest, offset=0, limit=0, max_bytes=0)


def require_read(state: AgentState, content: FileContent) -> None:
    """Raises `ToolError` where the file was not read, or is another one since."""
    mark = state.reads.get(content.name)
    if mark is None:
        raise ToolError(f"{content.name} was not read yet; read it with read_file before you edit it")
    if mark.content_hash != hash_of(content.data):
        raise ToolError(f"{content.name} was changed since you read it; read it again before you edit it")


def _slice(mark: ReadMark) -> tuple[str, int, int, int]:
    return mark.content_hash, mark.offset, mark.limit, mark.max_bytes
