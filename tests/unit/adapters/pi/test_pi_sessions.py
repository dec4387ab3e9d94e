"""Stored sessions of pi with unusual rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.sessions.client import Sessions


@pytest.mark.parametrize("name", [["x"], {}, 5, ""])
def test_prompt_with_an_id_of_another_type_is_read(tmp_path: Path, name: Any) -> None:
    rows = [
        {"type": "session", "version": 3, "id": "s1", "cwd": "/w"},
        {"type": "message", "id": name, "message": {"role": "user", "content": "do it"}},
    ]
    folder = tmp_path / ".pi" / "agent" / "sessions" / "--w--"
    folder.mkdir(parents=True)
    (folder / "2026-11-22T10-00-00-000Z_s1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sessions = Sessions(environ={"HOME": str(tmp_path)}, on_skipped=lambda _: None)
    [summary] = sessions.list()
    assert [message.text for message in sessions.get(summary.id).messages] == ["do it"]
