"""Queries of the runs that a service has stored. `RemoteMux.attach` returns the handle of one of them."""

import time
from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec

from agent_mux.client.remote.connection import ServiceConnection, fetch, fetch_pages, path_of, to_milliseconds
from agent_mux.control.messages import InteractionSnapshot
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import RunState
from agent_mux.sdk.options import FailOn
from agent_mux.sessions.summary import When

StateFilter = RunState | Literal["alive", "over"]
"""A state of runs; `alive` and `over` stand for all states of active and of ended runs."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run in a listing. Times are milliseconds since the epoch. None means unknown or not yet known."""

    run_id: str
    agent: str
    state: RunState
    """The state of the run; `spawned` while it waits in the queue or is being started."""
    created_at: int
    cwd: str
    """The working directory on the service's machine."""
    model: str | None = None
    session_id: str | None = None
    """The agent's own session id."""
    exit_reason: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    owner: str | None = None
    """The name of the token with which the run was requested."""
    project_id: str | None = None
    tags: tuple[str, ...] = ()
    event_count: int | None = None
    turn_count: int | None = None
    cost_usd: float | None = None
    error_code: str | None = None
    failed_on: tuple[FailOn, ...] = ()
    """The conditions of `fail_on` that held, so that the run counts as failed."""
    journal: str | None = None
    """The path of the recording on the service's machine."""
    pending: tuple[InteractionSnapshot, ...] = ()
    """The approvals and questions that the agent waits for."""


class RunDetails(RunSummary, frozen=True, kw_only=True):
    """One run with its request and its result."""

    request: dict[str, Any] = {}
    """The options as requested, without secrets."""
    result: dict[str, Any] | None = None
    """The wire format of the result: `RunResult.from_dict` reads it. None while the run is active."""


class ChangedRunFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that a run changed."""

    path: str
    """Relative to the working directory of the run."""
    change: Literal["created", "modified", "deleted"]
    added: int | None = None
    """Lines added; None where git did not count them."""
    removed: int | None = None
    binary: bool = False


class RunFiles(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The files that a run changed."""

    files: tuple[ChangedRunFile, ...]
    from_git: bool
    """Whether git compared the directory; otherwise the files are those that events report."""
    base: str | None = None
    """The commit that was checked out when the run started."""
    truncated: bool = False
    """Whether some files are missing in the list."""


class _Page(msgspec.Struct):
    runs: list[RunSummary]
    next: str | None = None


class RemoteRuns:
    """The runs that the service has stored, of all clients. Every call is a blocking request.

    Every method raises the error that the service returns, and UNAVAILABLE when it cannot be reached.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(  # noqa: PLR0913  # one for each filter
        self,
        *,
        agent: str | None = None,
        state: StateFilter | Collection[StateFilter] = (),
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
        """Return the runs that match all filters, latest first. More than 200 runs take several requests.

        Args:
            agent: The registered name of the agent.
            state: One state, or several of which the run has one.
            exit_reason: Why the run ended: `completed`, `failed`, ...
            model: The name of the model.
            session_id: The agent's own session id.
            project_id: The project id that was given with the run.
            owner: The name of the token with which the run was requested.
            tags: Tags, all of which the run has.
            since: Earliest time of the request: a `datetime`, or milliseconds since the epoch.
            until: Time before which the run was requested.
            limit: Maximum number of runs; None: all.
        """
        filters: dict[str, Any] = {
            "agent": agent,
            "state": (state,) if isinstance(state, str) else tuple(state),
            "exitReason": exit_reason,
            "model": model,
            "sessionId": session_id,
            "projectId": project_id,
            "owner": owner,
            "tag": tuple(tags),
            "since": to_milliseconds(since),
            "until": to_milliseconds(until),
        }
        return fetch_pages(self._connection, _Page, "runs", limit, **filters)

    def get(self, run_id: str) -> RunDetails:
        """Return one run, whose id is complete. Raises RUN_NOT_FOUND."""
        found: RunDetails = fetch(self._connection, RunDetails, "runs", run_id)
        return found

    def delete(self, run_id: str) -> None:
        """Delete an ended run with its recording. It needs the scope `run`.

        Raises RUN_NOT_FOUND; INVALID_STATE_TRANSITION for an active run.
        """
        self._connection.request_blocking("DELETE", path_of("runs", run_id))

    def prune(
        self, *, older_than: float | None = None, keep: int | None = None, dry_run: bool = False
    ) -> Sequence[RunSummary]:
        """Delete ended runs with their recordings. Returns the runs, oldest first. It needs the scope `run`.

        Args:
            older_than: Delete runs that ended more than this number of seconds ago.
            keep: Keep at most this number of ended runs, those that ended last.
            dry_run: Delete nothing.
        """
        ended = sorted((run.ended_at or run.created_at, run.run_id, run) for run in self.list(state="over", limit=None))
        oldest = 0.0 if older_than is None else (time.time() - older_than) * 1000
        surplus = 0 if keep is None else max(len(ended) - keep, 0)
        chosen = [run for number, (moment, _, run) in enumerate(ended) if number < surplus or moment < oldest]
        for run in () if dry_run else chosen:
            try:
                self.delete(run.run_id)
            except AgentMuxError as error:
                if error.code != "RUN_NOT_FOUND":  # deleted meanwhile
                    raise
        return chosen

    def files(self, run_id: str) -> RunFiles:
        """Return the files that a run changed in its working directory, as they are now.

        Raises RUN_NOT_FOUND; NOT_FOUND for a run that has not started, or whose directory is gone.
        """
        found: RunFiles = fetch(self._connection, RunFiles, "runs", run_id, "files")
        return found

    def read_file(self, run_id: str, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Return the bytes of a file in the working directory of a run. It needs the scope `run`.

        Args:
            run_id: The ULID of the run.
            path: Relative to the working directory; symbolic links are not followed.
            offset: The first byte.
            limit: Maximum number of bytes, at most 16 MiB. Without it, a larger file raises VALIDATION_ERROR.
        """
        place = path_of("runs", run_id, "files", *path.split("/"), offset=offset, limit=limit)
        return self._connection.request_blocking("GET", place, is_idempotent=True, accept="application/octet-stream")

    def read_text(self, run_id: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Return the whole text of the last turn of a run, or a part of it, as UTF-8.

        Args:
            run_id: The id of the run.
            offset: The first byte.
            limit: Maximum number of bytes; without it, a text of more than 16 MiB is refused.
        """
        path = path_of("v1", "runs", run_id, "text", offset=offset, limit=limit)
        return self._connection.request_blocking("GET", path, is_idempotent=True, accept="text/plain")

    def patch(self, run_id: str, paths: Collection[str] = ()) -> bytes:
        """Return the changes of a run as a unified diff, of some files only if there are `paths`.

        Raises NOT_FOUND where the working directory is in no git repository.
        """
        place = path_of("runs", run_id, "patch", path=tuple(paths))
        return self._connection.request_blocking("GET", place, is_idempotent=True, accept="text/x-diff")
