"""`AgentMux.runs`: find, list and control the runs of this machine, in whatever process they work."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.client.local_runs.pruning import PrunedRun, PruneLimits, prunable, prune
from agent_mux.control import places
from agent_mux.control.client import read_all, read_status, send_command
from agent_mux.control.messages import InteractionSnapshot, RunSnapshot, prompt_of
from agent_mux.errors import AgentMuxError
from agent_mux.journal.file import is_being_written
from agent_mux.run.base import TERMINAL_STATES, RunState, state_after
from agent_mux.run.commands import ALLOWED_AFTER_THE_END
from agent_mux.run.derivation import DerivedRun, codec_factory
from agent_mux.run.result import RunResult
from agent_mux.run.whole_text import WholeText, whole_text
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.options import FailOn
from agent_mux.sdk.registry import AdapterRegistry

JOURNAL_SUFFIX = ".journal"
MAX_DERIVED = 1 << 22
"""Bytes of a journal that a listing reads; of a longer one it reports how it began."""
StateFilter = RunState | Literal["alive", "over"]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of this machine. Times are milliseconds since the epoch. None means unknown or not yet known."""

    run_id: str
    """ULID of the run."""
    agent: str
    """Registered name of the agent."""
    state: RunState | None
    """None if the recording is too long for a listing, or cannot be read; `AgentMux.runs.find` reads any length."""
    started_at: int
    """Time of the start."""
    cwd: str | None = None
    """Working directory."""
    prompt: str = ""
    """The prompt of the run."""
    model: str | None = None
    """The model that the agent reported, else the requested one."""
    session_id: str | None = None
    """The agent's own session id."""
    exit_reason: str | None = None
    """How the run ended, one of the [words](#words) of `ExitReason`."""
    duration_ms: int | None = None
    """Milliseconds from the start of the run to its end."""
    turn_count: int | None = None
    """Number of turns."""
    event_count: int | None = None
    """Number of events."""
    cost_usd: float | None = None
    """Cost in US dollars."""
    error_code: str | None = None
    """The [code](#codes) of the error that ended the run; None if there was none."""
    failed_on: tuple[FailOn, ...] = ()
    """The conditions of `fail_on` that held, so that the run counts as failed."""
    tags: tuple[str, ...] = ()
    """The `tags` of the options, in their order."""
    journal: str | None = None
    """Path of the recording; None without one."""
    pending: tuple[InteractionSnapshot, ...] = ()
    """The approvals and questions that the agent waits for."""
    pid: int | None = None
    """Id of the process that owns an active run."""
    socket: str | None = None
    """Path of the control socket of an active run; None: it cannot be controlled from here."""
    problem: str | None = None
    """Why parts of the record are unknown."""

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL_STATES or (self.state is None and self.pid is None)


class LocalRuns:
    """The runs that are recorded in the global directory, and the active ones. Every call blocks."""

    def __init__(self, config_dir: Path, adapters: AdapterRegistry) -> None:
        """Create the namespace without reading anything."""
        self._config_dir = config_dir
        self._adapters = adapters
        self._last_result: tuple[str, RunResult | None] = "", None
        """The journal that was read last, and its result, so that showing a run reads its recording once."""

    def list(
        self,
        *,
        agent: str | None = None,
        state: StateFilter | Collection[StateFilter] = (),
        tags: Collection[str] = (),
        limit: int | None = 50,
    ) -> "list[RunRecord]":
        """Return the runs that match all filters, latest first.

        Args:
            agent: The registered name of the agent.
            state: One state, or several of which the run has one; `alive` and `over` stand for several states.
            tags: Tags, all of which the run has.
            limit: Maximum number of runs; None: all.
        """
        states = {state} if isinstance(state, str) else set(state)
        found: list[RunRecord] = []
        for record in self._records():
            if limit is not None and len(found) >= limit:
                break
            if agent in {None, record.agent} and set(tags) <= set(record.tags) and _has_state(record, states):
                found.append(record)
        return found

    def find(self, run: str | None = None, *, outcome: bool = True) -> RunRecord:
        """Return the run with an id or a unique prefix of it; without one, the latest run.

        `outcome`: read how the run ended, for which its whole recording is read.

        Raises RUN_NOT_FOUND; VALIDATION_ERROR for a prefix of several runs.
        """
        if run is None:
            latest = max(self._run_ids(), default=None)
            if latest is None:
                raise AgentMuxError("RUN_NOT_FOUND", f"no run is recorded in {self._config_dir / 'runs'}")
            return self._read(latest, outcome=outcome)
        wanted = run.strip().upper()
        matching = sorted(run_id for run_id in self._run_ids() if wanted and run_id.startswith(wanted))
        if wanted in matching or len(matching) == 1:
            return self._read(wanted if wanted in matching else matching[0], outcome=outcome)
        if matching:
            few = ", ".join(matching[:3]) + (", ..." if len(matching) > 3 else "")
            message = f"{len(matching)} runs begin with {run!r}: {few}; use a longer prefix"
            raise AgentMuxError("VALIDATION_ERROR", message)
        message = f"no run has an id that begins with {run!r}; `amux runs list` shows the runs of this machine"
        raise AgentMuxError("RUN_NOT_FOUND", message)

    def result(self, record: RunRecord) -> RunResult | None:
        """Return the result of a run that is over, from its recording; None without a recording."""
        if record.journal is None or not record.is_over:
            return None
        path, result = self._last_result
        if path != record.journal or result is None:
            result = self._derived(Path(record.journal)).result()
        return result

    def text(self, record: RunRecord) -> WholeText:
        """Return the whole text of the last turn of a run, which is read by range from its recording.

        Raises RUN_NOT_FOUND without a recording.
        """
        return whole_text(record.journal, codec_factory(self._adapters), record.run_id)

    def send(self, record: RunRecord, command: Mapping[str, Any], *, timeout: float | None = 30.0) -> dict[str, Any]:
        """Send a command to an active run and return its `ack`. See `agent_mux.control.messages`.

        Raises RUN_NOT_ACTIVE after the end, except for `abort` and `kill`; UNAVAILABLE for a run that cannot be
        reached; what the handle raises.
        """
        try:
            if record.socket is None:
                raise not_controllable(record)
            return send_command(Path(record.socket), command, timeout=timeout)
        except AgentMuxError as error:
            if error.code != "RUN_NOT_ACTIVE" or command["type"] not in ALLOWED_AFTER_THE_END:
                raise
            return self._ack_of_ended(record, command["type"])

    def _ack_of_ended(self, record: RunRecord, command: str) -> dict[str, Any]:
        """Return the `ack` to a command that ends a run, for a run that is over and has not answered."""
        over = self._read(record.run_id)
        ended_by_command = record.socket is not None and over.exit_reason == "aborted"
        run = {"runId": record.run_id, "agent": record.agent, "state": over.state or "lost"}
        delivery: Delivery = "applied" if ended_by_command else "unneeded"
        return {"type": "ack", "command": command, "delivery": delivery, "run": run}

    def prune(
        self,
        *,
        older_than: float | None = None,
        keep: int | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> Sequence[PrunedRun]:
        """Delete recordings of runs that are over, and sockets of killed runs. Returns the runs, oldest first.

        Args:
            older_than: Delete runs whose recording is older than this number of seconds.
            keep: Keep at most this number of runs, the latest.
            max_bytes: Keep at most this number of bytes, of the latest runs.
            dry_run: Delete nothing.
        """
        active = set(self._active_ids())
        limits = PruneLimits(older_than=older_than, keep=keep, max_bytes=max_bytes)
        chosen = prunable(self._journals(), active, limits)
        return chosen if dry_run else prune(chosen)

    # -- reading

    def _journals(self) -> Iterator[Path]:
        return (self._config_dir / "runs").glob(f"*{JOURNAL_SUFFIX}")

    def _run_ids(self) -> set[str]:
        return {path.stem for path in self._journals()} | set(self._active_ids())

    def _active_ids(self) -> Iterator[str]:
        for path, state in read_all(places.sockets(self._config_dir)).items():
            yield path.stem if isinstance(state, AgentMuxError) else state.run_id

    def _records(self) -> Iterator[RunRecord]:
        """Yield all runs, latest first; journals are read when they are needed."""
        active = {path.stem: (path, state) for path, state in read_all(places.sockets(self._config_dir)).items()}
        journals = {path.stem: path for path in self._journals()}
        for run_id in sorted(active.keys() | journals.keys(), reverse=True):
            if run_id in active:
                path, state = active[run_id]
                yield self._of_active(path, state)
            else:
                yield self._of_journal(journals[run_id], MAX_DERIVED)

    def _read(self, run_id: str, *, outcome: bool = True) -> RunRecord:
        path = places.find_socket(self._config_dir, run_id)
        if path is not None:
            try:
                state = read_status(path)
            except AgentMuxError as error:
                return self._of_active(path, error)
            if state is not None:
                return self._of_active(path, state)
        return self._of_journal(self._config_dir / "runs" / (run_id + JOURNAL_SUFFIX), None if outcome else 0)

    def _of_active(self, path: Path, state: RunSnapshot | AgentMuxError) -> RunRecord:
        if isinstance(state, RunSnapshot):
            return RunRecord(
                run_id=state.run_id, agent=state.agent, state=state.state, started_at=state.started_at, cwd=state.cwd,
                prompt=state.prompt, model=state.model, session_id=state.session_id, event_count=state.event_count,
                tags=state.tags, journal=state.journal, pending=tuple(state.pending), pid=state.pid, socket=str(path),
            )  # fmt: skip
        begun = self._of_journal(self._config_dir / "runs" / (path.stem + JOURNAL_SUFFIX), 0)
        return msgspec.structs.replace(begun, state="running", socket=str(path), problem=state.message)

    def _derived(self, path: Path) -> DerivedRun:
        return DerivedRun(path, codec_factory(self._adapters))

    def _of_journal(self, path: Path, max_bytes: int | None) -> RunRecord:
        """Return a recorded run; its outcome if the file has at most `max_bytes`."""
        try:
            derived = self._derived(path)
            header = derived.header
            begun = RunRecord(
                run_id=derived.run_id,
                agent=header.stream.agent,
                state=None,
                started_at=header.started_at,
                cwd=header.stream.cwd or None,
                prompt=prompt_of(header.options),
                model=header.options.get("model"),
                tags=header.tags,
                journal=str(path),
            )
            if is_being_written(path):
                problem = "another program works on this run and gives no access to it"
                return msgspec.structs.replace(begun, state="running", problem=problem)
            if max_bytes is not None and path.stat().st_size > max_bytes:
                return begun
            result = derived.result()
            self._last_result = str(path), result
        except (OSError, AgentMuxError, ValueError) as error:
            message = f"the recording cannot be read: {error}"
            return RunRecord(run_id=path.stem, agent="", state=None, started_at=0, journal=str(path), problem=message)
        cost = result.cost
        return msgspec.structs.replace(
            begun,
            agent=result.agent,
            state=state_after(result.exit_reason),
            model=result.model,
            session_id=result.session_id,
            exit_reason=result.exit_reason,
            duration_ms=result.duration_ms,
            turn_count=result.turn_count,
            event_count=derived.event_count,
            cost_usd=None if cost is None or cost.source == "unknown" else cost.total_usd,
            error_code=None if result.error is None else result.error.code,
            failed_on=tuple(result.failed_on),
        )


def not_controllable(record: RunRecord) -> AgentMuxError:
    """Return the error for a command to a run without a control socket."""
    if record.is_over:
        return run_is_over(record.run_id, record.state or "over")
    return AgentMuxError(
        "UNAVAILABLE",
        f"run {record.run_id} is active but has no control socket: it belongs to a service (use --server URL), or its "
        "program runs without control sockets",
    )


def run_is_over(run_id: str, state: str) -> AgentMuxError:
    """Return the error for a command to a run that has ended."""
    return AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} is over ({state}); start a new one")


def _has_state(record: RunRecord, states: Collection[str]) -> bool:
    if not states:
        return True
    group = "over" if record.is_over else "alive"
    return group in states or record.state in states
