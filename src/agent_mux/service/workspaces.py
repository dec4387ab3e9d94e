"""The working directory of a run, as far as the service may show it."""

from contextlib import aclosing
from pathlib import Path

from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.run.changed_files import FILE_CHANGES, ReportedChanges
from agent_mux.service.files.changes import Reported, RunWorkspace
from agent_mux.service.service import Service
from agent_mux.service.store.runs import RunRow
from agent_mux.worktrees.records import RecordDirectory, WorktreeRecord
from agent_mux.worktrees.repositories import GitDirectories


async def workspace_of(service: Service, run_id: str) -> RunWorkspace:
    """Return where a run works, or worked.

    Raises:
        AgentMuxError: RUN_NOT_FOUND; NOT_FOUND for a run that did not start, or whose directory is gone; FORBIDDEN for
            one outside of the allowed directories, which may have changed since.
    """
    live = await service.runs.find_created(run_id)
    row = live.row if live is not None else await service.runs.row_of(run_id)
    return await to_thread.run_sync(_workspace, service, row, limiter=service.readers)


def _workspace(service: Service, row: RunRow) -> RunWorkspace:
    if row.started_at is None:
        raise AgentMuxError("NOT_FOUND", f"run {row.run_id} has no files before its start; try again later")
    directory = Path(row.work_dir or row.cwd).resolve()
    worktree = (service.settings.config_dir / "worktrees" / row.run_id).resolve()
    is_own = directory.is_relative_to(worktree)
    if not (is_own or service.roots.contains(directory)):
        outside = f"the working directory of run {row.run_id} is outside of the roots of the service"
        raise AgentMuxError("FORBIDDEN", f"{outside}; allow it with `amux serve --root DIRECTORY`")
    if not directory.is_dir():
        removed = "; a worktree without changes is removed at the end of its run" if is_own else ""
        raise AgentMuxError("NOT_FOUND", f"the working directory {directory} of run {row.run_id} is gone{removed}")
    copied = RecordDirectory(worktree).read() if is_own else None
    if copied is not None and copied.base is not None:
        copied = None
    return RunWorkspace(
        directory=directory,
        is_own=is_own,
        roots=service.roots.directories,
        base=row.base_commit if copied is None else copied.start or None,
        copied=None if copied is None else _directories_of(copied, worktree),
        knows_base=row.work_dir is not None,
        started_at=row.started_at,
    )


def _directories_of(copied: WorktreeRecord, top: Path) -> GitDirectories:
    return GitDirectories(top, Path(copied.git_directory), Path(copied.common))


async def reported_of(service: Service, run_id: str, workspace: RunWorkspace) -> Reported:
    """Return the changed files that the events of a run report in its directory; none without its journal."""
    changes = ReportedChanges(str(workspace.directory))
    try:
        view = await service.runs.get(run_id, full=False)
        end = view.event_count if isinstance(view.event_count, int) else 0
        if end:
            await _observe(service, run_id, end, changes)
    except AgentMuxError as error:
        if error.code != "RUN_NOT_FOUND":
            raise
    inside = (one for one in changes.files if one.path not in {".", ".."} and not one.path.startswith("../"))
    return {one.path: one for one in inside}


async def _observe(service: Service, run_id: str, end: int, changes: ReportedChanges) -> None:
    """Observe the events before a number; a live run has more to come."""
    async with aclosing(service.streams.batches(run_id, 0)) as batches:
        async for first, batch in batches:
            for event in batch:
                if isinstance(event, FILE_CHANGES):
                    changes.observe(event)
            if first + len(batch) >= end:
                break
