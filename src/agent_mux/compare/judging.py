"""Judge the result of a trial: run the checks in a fresh checkout, with the tests of the start."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_mux.compare.checks.files import read_file
from agent_mux.compare.checks.flakiness import Rounds, with_flakiness
from agent_mux.compare.checks.hidden import copy_hidden_checks
from agent_mux.compare.checks.protected import Protection
from agent_mux.compare.checks.running import run_checks
from agent_mux.compare.checks.settings_of_tests import with_test_settings
from agent_mux.compare.frozen_start import FrozenStart, Workspace
from agent_mux.compare.places import Places
from agent_mux.compare.records import CheckResult, PatchedFile, StoredPatch
from agent_mux.compare.request import ComparisonRequest
from agent_mux.errors import AgentMuxError
from agent_mux.run.result import RunResult

IsWanted = Callable[[], bool]
_MAX_NAMES = 3  # in a note


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrial:
    """The results of the checks on a trial, and the changes that could have influenced them."""

    checks: tuple[CheckResult, ...]
    notes: tuple[str, ...] = ()
    tampered: tuple[str, ...] = ()
    """Settings of tests that the trial changed in files that are not protected as a whole: `FILE (SETTING, ...)`."""


class TrialJudge:
    """Runs the checks of a comparison. All methods block; call them in a thread."""

    def __init__(
        self, request: ComparisonRequest, start: FrozenStart, places: Places, environ: Mapping[str, str]
    ) -> None:
        """Prepare. Raises VALIDATION_ERROR for an invalid pattern of protected files."""
        self._request = request
        self._start = start
        self._places = places
        self._environ = environ
        self._protection = Protection(request.protect, is_enabled=request.has_protection)
        self._rounds: Rounds = ()

    @property
    def has_checks(self) -> bool:
        """Whether the comparison has checks."""
        return bool(self._request.checks)

    def calibrate(self, is_wanted: IsWanted) -> tuple[CheckResult, ...]:
        """Run the checks once on the untouched start. Raises `AgentMuxError`."""
        with self._checkout(self._start.record.tree, is_wanted) as checkout:
            return self._run(checkout, None, (), is_wanted)

    def learn(self, rounds: Rounds) -> None:
        """Treat as flaky what differs between these rounds on the untouched start."""
        self._rounds = rounds

    def tampered(self, patch: StoredPatch | None) -> tuple[str, ...]:
        """Return the protected files that a trial changed in a way that could decide checks."""
        return () if patch is None else self._protection.tampered(patch.files)

    def judge(self, tree: str, patch: StoredPatch | None, result: RunResult | None, is_wanted: IsWanted) -> JudgedTrial:
        """Run the checks on the result of a trial. Raises `AgentMuxError`."""
        files = () if patch is None else patch.files
        plain = None if result is None else result.to_dict()
        with self._checkout(tree, is_wanted) as checkout:
            tampered = self._restore(checkout, files, is_wanted)
            checks = self._run(checkout, plain, [file.path for file in files], is_wanted)
        influences = self._protection.unprotected_influences(files) if self._request.has_protection else ()
        shown = ", ".join(influences[:_MAX_NAMES])
        notes = (f"changed files that can influence checks: {shown}",) if influences else ()
        return JudgedTrial(checks=with_flakiness(checks, self._rounds), notes=notes, tampered=tampered)

    def _restore(self, checkout: Workspace, files: Sequence[PatchedFile], is_wanted: IsWanted) -> tuple[str, ...]:
        """Take tests and their settings from the start. Returns the changed settings, with their files."""
        mixed = self._protection.mixed(files)
        ends = {path: _read(checkout.path, path) for path in mixed}
        self._start.restore(checkout, [*self._protection.protected(files), *mixed], is_wanted=is_wanted)
        tampered = []
        for path, end in ends.items():
            content, changed = with_test_settings(PurePosixPath(path).name, _read(checkout.path, path), end)
            _write(checkout.path / path, content)
            if changed:
                tampered.append(f"{path} ({', '.join(changed)})")
        return tuple(tampered)

    def _run(
        self, checkout: Workspace, result: Mapping[str, Any] | None, changed: Sequence[str], is_wanted: IsWanted
    ) -> tuple[CheckResult, ...]:
        if self._request.hidden_checks is not None:
            copy_hidden_checks(self._request.hidden_checks, checkout.path)
        return run_checks(
            self._request.checks,
            checkout.cwd,
            self._environ,
            result=result,
            changed=changed,
            temporary=self._places.temporary(),
            is_wanted=is_wanted,
        )

    @contextmanager
    def _checkout(self, tree: str, is_wanted: IsWanted) -> Iterator[Workspace]:
        path: Path = self._places.new_workspace()
        checkout = self._start.check_out(path, tree, is_wanted)
        try:
            yield checkout
        finally:
            with suppress(AgentMuxError):  # it is removed with the comparison's next start
                checkout.remove()


def _read(checkout: Path, path: str) -> bytes | None:
    try:
        return read_file(checkout, path)
    except (OSError, ValueError):
        return None


def _write(path: Path, content: bytes | None) -> None:
    """Replace a file of a checkout, whose present one is that of the start. Raises `AgentMuxError`."""
    try:
        if content is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.write_bytes(content)
    except OSError as error:
        raise AgentMuxError("INTERNAL", f"{path} cannot be written: {error.strerror or error}") from error
