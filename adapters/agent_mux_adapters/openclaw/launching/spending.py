"""What the model calls of a prompt used. The bridge tells nobody; the gateway keeps it in the session's database.

An event `model.completed` is written when a prompt is over: the tokens of all its calls together, and what they cost.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

DATABASES = "agents/*/agent/openclaw-agent.sqlite"
_NEWS = (
    "SELECT session_id, seq, event_json FROM trajectory_runtime_events "
    'WHERE created_at >= ? AND event_json LIKE \'%"type":"model.completed"%\' ORDER BY created_at, seq'
)


def state_directory(environment: Mapping[str, str]) -> Path:
    """Where OpenClaw keeps its state."""
    chosen = environment.get("OPENCLAW_STATE_DIR", "").strip() or "~/.openclaw"
    if chosen != "~" and not chosen.startswith("~/"):
        return Path(chosen)
    home = environment.get("OPENCLAW_HOME") or environment.get("HOME") or str(Path.home())
    return Path(home) / chosen[2:]


class Spending:
    """Reads what was used since `began`, in milliseconds since the epoch; each prompt once. Never writes."""

    def __init__(self, state: Path, began: int) -> None:
        self._state = state
        self._began = began
        self._seen: set[tuple[str, int]] = set()

    def news(self) -> list[bytes]:
        """The usage of prompts that are over since the last call, as JSON objects."""
        return [used for database in self._state.glob(DATABASES) for used in self._read(database)]

    def _read(self, database: Path) -> list[bytes]:
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=1.0)) as connection:
                rows = connection.execute(_NEWS, (self._began,)).fetchall()
        except sqlite3.Error:  # locked, or of another version: then nobody knows what was used
            return []
        told = []
        for session, number, event in rows:
            if (session, number) not in self._seen:
                self._seen.add((session, number))
                told += _usage_in(event)
        return told


def _usage_in(event: str) -> list[bytes]:
    try:
        completed = json.loads(event)
        used = {"runId": completed.get("runId"), "usage": completed["data"]["usage"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [json.dumps(used, separators=(",", ":")).encode()]
