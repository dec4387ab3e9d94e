"""Make the result of a trial in the repository that was compared on, and run the checks again."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_mux.compare.checks.definitions import read_checks
from agent_mux.compare.checks.running import run_checks
from agent_mux.compare.frozen_start import FrozenStart
from agent_mux.compare.ledger import PLAN
from agent_mux.compare.records import CheckResult, Comparison, Trial
from agent_mux.compare.working_files import WorkingFiles
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.applying import apply_patch


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedTrial:
    """The changes of a trial that were made in its source."""

    trial: str
    """Id of the trial."""
    source: str
    """Path of the directory into which the changes were written."""
    files: tuple[str, ...]
    """The changed files, relative to `source`."""
    is_merged: bool
    """Whether a three-way merge was needed because the source has changed."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks afterwards, on a copy of the source."""
    tampered: tuple[str, ...] = ()
    """Files of the checks that the trial changed: in the comparison they were those of the start, now they are not."""


def apply_trial(
    folder: Path,
    found: Comparison,
    trial: Trial,
    *,
    has_checks: bool = True,
    is_wanted: Callable[[], bool] = lambda: True,
) -> AppliedTrial:
    """Apply the patch of a trial to the directory that was frozen, uncommitted. Blocking.

    The checks run afterwards, on a copy of that directory, so that they write nothing into it.

    Args:
        folder: The folder of the comparison.
        found: The comparison.
        trial: One of its trials.
        has_checks: Whether the checks run.
        is_wanted: Polled while the checks run; False ends them.

    Raises:
        AgentMuxError: NOT_FOUND; INVALID_STATE_TRANSITION if the patch conflicts, in which case nothing is changed;
            CONFIG_ERROR if records or the source cannot be read.
    """
    if found.start is None:
        raise AgentMuxError("NOT_FOUND", f"comparison {found.plan.id} ended before its start was frozen")
    source = Path(found.start.source)
    if not source.is_dir():
        raise AgentMuxError("CONFIG_ERROR", f"{source} no longer exists; use amux compare diff {trial.id}")
    if trial.patch is None:
        return AppliedTrial(trial=trial.id, source=str(source), files=(), is_merged=False)
    try:
        is_merged = apply_patch(source, folder / trial.patch.path, folder / "objects" / "objects", os.environ)
    except AgentMuxError as error:
        if error.code != "INVALID_STATE_TRANSITION":
            raise
        why = f"the changes of {trial.id} do not fit {source}, which is unchanged: {error.message}"
        next_step = f"merge them by hand: amux compare diff {trial.id} --in {found.plan.id}"
        raise AgentMuxError("INVALID_STATE_TRANSITION", f"{why}; {next_step}") from error
    checks: tuple[CheckResult, ...] = ()
    definitions = read_checks(found.plan.checks, where=str(folder / PLAN), directory=Path(found.plan.options["cwd"]))
    if has_checks and definitions:
        with WorkingFiles(folder.parent.parent, folder.name).applying() as scratch:
            cwd = source / found.start.subdirectory
            copy = FrozenStart.freeze(cwd, scratch, os.environ, setup=found.start.setup, is_wanted=is_wanted)
            checkout = copy.make_workspace(scratch / "checkout", is_wanted)
            checks = run_checks(definitions, checkout.cwd, os.environ, temporary=scratch, is_wanted=is_wanted)
    files = tuple(file.path for file in trial.patch.files)
    return AppliedTrial(
        trial=trial.id, source=str(source), files=files, is_merged=is_merged, checks=checks, tampered=trial.tampered
    )
