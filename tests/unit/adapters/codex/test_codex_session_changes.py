"""Stored sessions of Codex are changed by requests to its app-server."""

import pytest
from tests.unit.adapters.session_steps import SESSION, perform

from agent_mux.sdk.session_changes import SessionChangeRefusedError
from agent_mux_adapters.codex.session_changes import SESSIONS

REASON = "cannot delete thread 0af1: forked history still references it"


def test_a_session_is_deleted_by_the_app_server() -> None:
    assert SESSIONS.delete is not None
    steps, _ = perform(SESSIONS.delete(SESSION), [{"id": 1, "result": {}}, {"id": 2, "result": {}}])
    assert steps[0] == ("/agent", "app-server")
    assert [step["method"] for step in steps[1:]] == ["initialize", "initialized", "thread/delete"]
    assert steps[-1]["params"] == {"threadId": "0af1"}


def test_the_reason_why_codex_keeps_a_session_is_reported() -> None:
    assert SESSIONS.delete is not None
    answers = [{"id": 1, "result": {}}, {"id": 2, "error": {"code": -32600, "message": REASON}}]
    with pytest.raises(SessionChangeRefusedError, match=REASON):
        perform(SESSIONS.delete(SESSION), answers)
