"""The comparisons of this machine: list, read, apply a result, remove."""

import builtins
import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_mux.compare.ledger import COMPARISONS, ComparisonFolder, trial_named
from agent_mux.compare.records import Comparison, StoredPatch, Trial
from agent_mux.errors import AgentMuxError

if TYPE_CHECKING:
    from agent_evaluation.strategies.trials import Selection
    from agent_mux.api.comparisons import ComparisonReport
    from agent_mux.compare.applying import AppliedTrial
    from agent_mux.sdk.registry import AdapterRegistry

DIFF_TIMEOUT = 60.0  # seconds
DocumentFormat = Literal["markdown", "html"]


class Comparisons:
    """The stored comparisons. All methods block."""

    def __init__(self, config_dir: Path) -> None:
        """Name their place; nothing is read."""
        self._directory = config_dir / COMPARISONS

    def list(self) -> "list[Comparison]":
        """Return the comparisons, latest first. Folders that cannot be read are skipped; `get` states why."""
        found = []
        for name in reversed(self._names()):
            with contextlib.suppress(AgentMuxError):
                found.append(ComparisonFolder(self._directory / name).comparison())
        return found

    def get(self, comparison: str | None = None) -> Comparison:
        """Return a comparison by its id or the beginning of it; default: the latest one.

        Raises:
            AgentMuxError: NOT_FOUND; CONFIG_ERROR if its records cannot be read.
        """
        return ComparisonFolder(self.folder(comparison)).comparison()

    def folder(self, comparison: str | None = None) -> Path:
        """Return the folder of a comparison. Raises as `get`."""
        names = self._names()
        if comparison is None:
            if not names:
                raise AgentMuxError("NOT_FOUND", "no comparison is stored; start one with amux compare")
            return self._directory / names[-1]
        found = [name for name in names if comparison and name.startswith(comparison.upper())]
        if len(found) == 1:
            return self._directory / found[0]
        if found:
            raise AgentMuxError(
                "NOT_FOUND", f"{comparison} stands for {len(found)} comparisons: {', '.join(found[:5])}"
            )
        raise AgentMuxError("NOT_FOUND", f"no comparison {comparison!r} is stored; amux compare list shows all")

    def trial(self, name: str, comparison: str | None = None) -> "tuple[Comparison, Trial]":
        """Return a trial by its id, or the first trial of the candidate with this name. Raises NOT_FOUND."""
        found = self.get(comparison)
        return found, trial_named(found, name)

    def patch(self, name: str, comparison: str | None = None) -> bytes:
        """Return the patch of a trial, which `git apply` reproduces byte for byte; empty if it changed nothing."""
        found, trial = self.trial(name, comparison)
        return b"" if trial.patch is None else self.patch_path(found, trial.patch).read_bytes()

    def difference(self, first: str, second: str, comparison: str | None = None) -> bytes:
        """Return the difference between the results of two trials as a unified diff; empty if they are equal.

        Raises:
            AgentMuxError: NOT_FOUND; CONFIG_ERROR without git; SPAWN_ERROR if the results cannot be compared.
        """
        from agent_mux.compare.differences import diff_trials  # noqa: PLC0415  # it reads patches

        found, left = self.trial(first, comparison)
        _, right = self.trial(second, found.plan.id)
        git = shutil.which("git")
        if git is None:
            raise AgentMuxError("CONFIG_ERROR", "git is not on PATH; install it")
        if found.start is None:
            raise AgentMuxError("NOT_FOUND", f"comparison {found.plan.id} ended before its start was frozen")
        folder = self._directory / found.plan.id
        text = diff_trials(folder, found.start, left, right, git=git, environ=os.environ, timeout=DIFF_TIMEOUT)
        return text.encode("utf-8", "surrogateescape")

    def report(self, comparison: str | None = None, *, strategy: str | None = None) -> "ComparisonReport":
        """Return the report of a comparison, with what differs between its candidates.

        Args:
            comparison: Its id, or the beginning of it; default: the latest one.
            strategy: How a trial is selected; default: as the comparison did.

        Raises:
            AgentMuxError: VALIDATION_ERROR if no strategy has this name; as `get`.
        """
        found = self.get(comparison)
        return report_in(self._directory / found.plan.id, found, strategy=strategy)

    def export(
        self,
        form: DocumentFormat,
        comparison: str | None = None,
        *,
        strategy: str | None = None,
        adapters: "AdapterRegistry | None" = None,
    ) -> str:
        """Return a comparison as a document.

        Args:
            form: `markdown`, or `html`: one file that needs no network.
            comparison: Its id, or the beginning of it; default: the latest one.
            strategy: How a trial is selected; default: as the comparison did.
            adapters: The agents whose recordings are read for transcripts; default: all that are registered.

        Raises:
            AgentMuxError: As `report`.
        """
        found = self.get(comparison)
        folder = self._directory / found.plan.id
        report = report_in(folder, found, strategy=strategy)
        if form == "markdown":
            from agent_mux.compare.export.markdown import markdown_of  # noqa: PLC0415  # few callers export

            return markdown_of(report, found, folder)
        from agent_mux.compare.export.html import html_of  # noqa: PLC0415
        from agent_mux.run.derivation import codec_factory, derive_events  # noqa: PLC0415
        from agent_mux.sdk.registry import AdapterRegistry  # noqa: PLC0415

        make_codec = codec_factory(AdapterRegistry() if adapters is None else adapters)
        return html_of(report, found, folder, lambda journal: derive_events(journal, make_codec))

    def apply(
        self,
        name: str,
        comparison: str | None = None,
        *,
        has_checks: bool = True,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> "AppliedTrial":
        """Make the changes of a trial in the directory that was compared on, uncommitted, and run the checks again.

        Args:
            name: Id of the trial, or its candidate for the first trial.
            comparison: Its id, or the beginning of it; default: the latest one.
            has_checks: Whether the checks run, on a copy of the directory.
            is_wanted: Polled while the checks run; False ends them.

        Raises:
            AgentMuxError: NOT_FOUND; INVALID_STATE_TRANSITION if the patch conflicts, in which case nothing is
                changed; CONFIG_ERROR if records or the directory cannot be read.
        """
        from agent_mux.compare.applying import apply_trial  # noqa: PLC0415  # few callers apply

        found, trial = self.trial(name, comparison)
        return apply_trial(self._directory / found.plan.id, found, trial, has_checks=has_checks, is_wanted=is_wanted)

    def select(self, strategy: str | None = None, comparison: str | None = None) -> "Selection":
        """Return the trial that a strategy selects, or why it selects none.

        Args:
            strategy: `checks-first`, `cheapest`, ...; default: that of the comparison.
            comparison: Its id, or the beginning of it; default: the latest one.

        Raises:
            AgentMuxError: VALIDATION_ERROR if no strategy has this name; as `get`.
        """
        from agent_mux.compare.selecting import selection_of  # noqa: PLC0415  # few callers select

        return selection_of(self.get(comparison), strategy)

    def patch_path(self, comparison: Comparison, patch: StoredPatch) -> Path:
        """Return the file of a stored patch."""
        return self._directory / comparison.plan.id / patch.path

    def remove(self, comparison: str) -> str:
        """Remove a comparison with all its records and workspaces. Returns its id.

        Raises:
            AgentMuxError: NOT_FOUND; INVALID_STATE_TRANSITION if it is active or being applied; CONFIG_ERROR, INTERNAL
                if files remain.
        """
        from agent_mux.compare.working_files import WorkingFiles  # noqa: PLC0415  # few callers remove

        path = self.folder(comparison)
        folder = ComparisonFolder(path)
        if folder.is_active():
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"comparison {path.name} is active; wait for its end")
        files = WorkingFiles(self._directory.parent, path.name)
        if files.is_applying:
            why = f"a trial of comparison {path.name} is being applied; wait for its checks, or end that command"
            raise AgentMuxError("INVALID_STATE_TRANSITION", why)
        files.remove()
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be removed completely; check its permissions")
        return path.name

    def _names(self) -> "builtins.list[str]":
        try:
            return sorted(entry.name for entry in os.scandir(self._directory) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []
        except OSError as error:
            why = f"{self._directory} cannot be read: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", why) from error


def report_in(folder: Path, found: Comparison, *, strategy: str | None = None) -> "ComparisonReport":
    """Return the report of a comparison in a folder. Raises VALIDATION_ERROR for an unknown strategy."""
    from agent_mux.compare.differences import differences_of  # noqa: PLC0415  # it reads patches
    from agent_mux.compare.report import report_of  # noqa: PLC0415

    return report_of(found, differences=differences_of(found, folder), strategy=strategy)
