"""The runs of a service, whoever started them: found, not held. For a handle, `RemoteMux.attach` takes an id."""

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from agent_mux.client.remote.asking import answer, milliseconds
from agent_mux.client.remote.connection import Line
from agent_mux.run.base import RunState
from agent_mux.sessions.summary import When

LARGEST_PAGE = 200
StateWanted = RunState | Literal["alive", "over"]
"""`alive` and `over` are several states each."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A run as a listing has it. Times are milliseconds since the epoch; None: not known, or not yet."""

    run_id: str
    agent: str
    state: RunState
    """`spawned`: it waits for a place, or is being started."""
    created_at: int
    cwd: str
    """On the machine of the service."""
    model: str | None = None
    session_id: str | None = None
    """The agent's own id of the session."""
    exit_reason: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    owner: str | None = None
    """The name of the token that asked for it."""
    project_id: str | None = None
    tags: tuple[str, ...] = ()
    event_count: int | None = None
    turn_count: int | None = None
    cost_usd: float | None = None
    error_code: str | None = None
    journal: str | None = None
    """Path of the recording, on the machine of the service."""


class _Page(msgspec.Struct):
    runs: list[RunSummary]
    next: str | None = None


class RemoteRuns:
    """Every run that the service remembers. Blocking; every call asks the service, and raises what it says, too."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line

    def list(  # noqa: PLR0913  # one for each thing that can be asked for
        self,
        *,
        agent: str | None = None,
        state: StateWanted | Collection[StateWanted] = (),
        exit_reason: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        project_id: str | None = None,
        owner: str | None = None,
        tags: Collection[str] = (),
        since: When | None = None,
        until: When | None = None,
        limit: int | None = 50,
    ) -> "list[RunSummary]":
        """The runs that are wanted, the latest first; what is more than 200 comes in pages.

        Args:
            agent: The registered name of an agent.
            state: One state, or several of which one is enough.
            exit_reason: Why it ended: `completed`, ...
            model: Name of the model.
            session_id: The agent's own id of the session.
            project_id: What it is counted to.
            owner: Name of the token that asked for it.
            tags: It has all of these.
            since: Asked for at or after: a `datetime`, or milliseconds since the epoch.
            until: Asked for before.
            limit: How many at most; None: all.
        """
        wanted: dict[str, Any] = {
            "agent": agent,
            "state": (state,) if isinstance(state, str) else tuple(state),
            "exitReason": exit_reason,
            "model": model,
            "sessionId": session_id,
            "projectId": project_id,
            "owner": owner,
            "tag": tuple(tags),
            "since": milliseconds(since),
            "until": milliseconds(until),
        }
        found: list[RunSummary] = []
        cursor: str | None = None
        while limit is None or len(found) < limit:
            size = LARGEST_PAGE if limit is None else min(limit - len(found), LARGEST_PAGE)
            page: _Page = answer(self._line, _Page, "runs", **wanted, limit=size, cursor=cursor)
            found += page.runs
            cursor = page.next
            if cursor is None:
                break
        return found
