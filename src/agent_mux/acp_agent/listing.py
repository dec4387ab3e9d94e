"""The stored sessions of an agent, page by page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from acp.schema import ListSessionsResponse, SessionInfo

from agent_mux.acp_agent.names import editors_id
from agent_mux.client import AgentMux
from agent_mux.sessions.filter import SessionFilter
from agent_mux.sessions.summary import SessionSummary

PAGE = 50  # sessions in one answer


def listed(
    mux: AgentMux, agent: str, live: Mapping[str, str], cwd: str | None, cursor: str | None
) -> ListSessionsResponse:
    """A page, the latest first. Blocking.

    Args:
        mux: Reads what the agents stored.
        agent: Whose sessions. Raises CAPABILITY_ERROR where they cannot be read.
        live: The editor's ids of the sessions of this connection, by the agent's own.
        cwd: Where they were held; None: anywhere.
        cursor: As the page before told.
    """
    start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
    found = mux.sessions.list(SessionFilter(agent=agent, cwd=cwd), limit=start + PAGE + 1)[start:]
    infos = [info for summary in found[:PAGE] if (info := _info(summary, live)) is not None]
    return ListSessionsResponse(sessions=infos, next_cursor=str(start + PAGE) if len(found) > PAGE else None)


def _info(summary: SessionSummary, live: Mapping[str, str]) -> SessionInfo | None:
    """One that does not say where it was held cannot be opened by an editor."""
    if summary.cwd is None or not Path(summary.cwd).is_absolute():
        return None
    return SessionInfo(
        session_id=live.get(summary.native_id) or editors_id(summary),
        cwd=summary.cwd,
        title=summary.title or None,
        updated_at=datetime.fromtimestamp(summary.updated_at / 1000, UTC).isoformat(),
    )
