"""Stored sessions of Gemini CLI are deleted by their id, never by a number that means another one."""

from dataclasses import replace

import pytest
from tests.unit.adapters.session_steps import SESSION, perform, printed

from agent_mux.sdk.session_changes import SessionChangeRefusedError
from agent_mux_adapters.gemini.session_changes import SESSIONS, delete_argument

LISTED = printed("""
Available sessions for this project (3):
  1. remember [7] and (8) (2 minutes ago) [5b5b6aa0-8a3f-4ae5-ac4a-6a4b4a6dd9cb]
  2. do the thing (1 minute ago) [0af1]
  3. 4. a title that begins with a number (Just now, current) [3e0c1d59-0a6b-4d33-8d3f-0c5b1c7a1f11]
""")
"""As 0.61.0 prints it."""
assert SESSIONS.delete is not None
delete = SESSIONS.delete


def test_a_listed_session_is_deleted_by_its_id() -> None:
    steps, _ = perform(delete(SESSION), [LISTED, printed("Deleted session 2: do the thing (1 minute ago)\n")])
    assert steps == [("/agent", "--list-sessions"), ("/agent", "--delete-session=0af1")]


def test_an_id_that_begins_with_the_number_of_a_session_is_replaced_by_its_own_number() -> None:
    session = replace(SESSION, native_id="3e0c1d59-0a6b-4d33-8d3f-0c5b1c7a1f11")
    steps, _ = perform(delete(session), [LISTED, printed("Deleted session 3: 4. a title (Just now)\n")])
    assert steps[1] == ("/agent", "--delete-session=3")
    assert delete_argument("007x", {"007x": "1", "other": "7"}) == "1"
    assert delete_argument("5b5b", {"5b5b": "1", "other": "2"}) == "5b5b"


@pytest.mark.parametrize("native_id", ["2", "5b5b6aa0", "1e9"])
def test_a_session_that_is_not_listed_is_not_deleted(native_id: str) -> None:
    with pytest.raises(SessionChangeRefusedError, match="does not list it"):
        perform(delete(replace(SESSION, native_id=native_id)), [LISTED])


def test_a_session_without_its_directory_is_not_deleted() -> None:
    with pytest.raises(SessionChangeRefusedError, match="directory is gone"):
        perform(delete(replace(SESSION, has_own_cwd=False)), [])


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (printed("", "Loaded\nFailed to delete session: EACCES\n"), "Failed to delete session: EACCES"),
        (printed("", "Cannot delete the current active session.\n"), "current active session"),
        (printed(), "it printed nothing"),
    ],
)
def test_a_failure_with_exit_code_0_is_reported(output: object, reason: str) -> None:
    with pytest.raises(SessionChangeRefusedError, match=reason):
        perform(delete(SESSION), [LISTED, output])
