"""Records of the gateway: its raw stream of model output, and the usage in its database.

The raw stream is a file that `OPENCLAW_RAW_STREAM_PATH` names. For usage the gateway inserts an event `model.completed`
into the session's database when a prompt is over: the tokens of all its model calls together, and their cost.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

ANSWER_END = b'"event":"assistant_message_end"'
"""In the lines of the raw stream that hold a whole answer. Lines with fragments are in no reliable order."""
_THINKING_END = b'"evtType":"thinking_end"'
_TEXT_FRAGMENT = b'"event":"assistant_text_stream"'
_TIME_LENGTH = len('{"ts":1795313575366')
_DATABASES = "agents/*/agent/openclaw-agent.sqlite"
_COMPLETED = (
    "SELECT session_id, seq, event_json FROM trajectory_runtime_events "
    'WHERE created_at >= ? AND event_json LIKE \'%"type":"model.completed"%\' ORDER BY created_at, seq'
)


class RawStream:
    """The file to which the gateway appends the model's output, line by line, in an approximate order."""

    def __init__(self, path: Path) -> None:
        self.is_answering = False
        """Whether the model has begun an answer that is not complete yet."""
        self.is_in_text = False
        """Whether that answer has reached its text, after which it contains no more thinking."""
        self._path = path
        self._position = 0
        self._ended_at = b""
        """The time of the last complete answer, as the bytes at the beginning of a line."""

    def read_new(self) -> list[bytes]:
        """Return the lines with whole answers or whole thinking since the last call."""
        try:
            if self._path.stat().st_size == self._position:
                return []
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            return []
        lines = data.split(b"\n")[:-1]
        self._position += sum(map(len, lines)) + len(lines)
        return [line for line in lines if self._is_whole(line)]

    def _is_whole(self, line: bytes) -> bool:
        """Return whether the line holds a whole answer or thinking, and update the state of the current answer."""
        time_of_line, is_end = line[:_TIME_LENGTH], ANSWER_END in line
        if time_of_line > self._ended_at:  # older lines belong to the answer that is complete
            self.is_answering = not is_end
            self.is_in_text = not is_end and (self.is_in_text or _TEXT_FRAGMENT in line)
        if is_end:
            self._ended_at = max(time_of_line, self._ended_at)
        return is_end or _THINKING_END in line


def state_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory in which OpenClaw keeps its state."""
    path = environment.get("OPENCLAW_STATE_DIR", "").strip() or "~/.openclaw"
    if path != "~" and not path.startswith("~/"):
        return Path(path)
    home = environment.get("OPENCLAW_HOME") or environment.get("HOME") or str(Path.home())
    return Path(home) / path[2:]


class UsageDatabases:
    """The usage, and why the last answer ended, of each prompt since `began`, in milliseconds since the epoch.

    The databases are opened read-only.
    """

    def __init__(self, state: Path, began: int) -> None:
        self._state = state
        self._began = began
        self._seen: set[tuple[str, int]] = set()

    def read_new(self) -> list[bytes]:
        """Return the usage of the prompts that ended since the last call, as JSON objects."""
        return [usage for database in self._state.glob(_DATABASES) for usage in self._read(database)]

    def _read(self, database: Path) -> list[bytes]:
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=1.0)) as connection:
                rows = connection.execute(_COMPLETED, (self._began,)).fetchall()
        except sqlite3.Error:  # locked, or of another version: the usage stays unknown
            return []
        found = []
        for session, number, event in rows:
            if (session, number) not in self._seen:
                self._seen.add((session, number))
                found += _usage_in(event)
        return found


def _usage_in(event: str) -> list[bytes]:
    try:
        completed = json.loads(event)
        data = completed["data"]
        usage = {"runId": completed.get("runId"), "usage": data["usage"], "stopReason": data.get("stopReason")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [json.dumps(usage, separators=(",", ":")).encode()]
