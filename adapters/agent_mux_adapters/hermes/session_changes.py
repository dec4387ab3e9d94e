"""How Hermes changes its stored sessions: `hermes sessions`. Measured with 0.19.0."""

from agent_mux.sdk.session_changes import SessionCommands, run_words

SESSIONS = SessionCommands(
    delete=lambda session: run_words(session, "sessions", "delete", "--yes", session.native_id),
    rename=lambda session, title: run_words(session, "sessions", "rename", session.native_id, title),
    missing={"rewind": "its `/undo` and `/rollback` change a session that is open, not a stored one"},
)
