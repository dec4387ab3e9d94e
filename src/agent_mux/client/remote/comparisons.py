"""The comparisons that a service has stored, over HTTP: the interface of `agent_mux.compare.store`."""

import builtins
from typing import TYPE_CHECKING, Literal, NoReturn

import msgspec

from agent_evaluation.outcomes import CheckStatus
from agent_mux.api.comparisons import ComparisonReport
from agent_mux.client.remote.comparison import STOP_TIMEOUT, StoredView, record_of
from agent_mux.client.remote.connection import ServiceConnection, fetch, fetch_pages, path_of
from agent_mux.client.remote.responses import decode_response, unsupported
from agent_mux.compare.ledger import trial_named
from agent_mux.compare.records import CheckResult, Comparison, StoredPatch, Trial
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import RUN_ID

if TYPE_CHECKING:
    from agent_evaluation.strategies.trials import Selection
    from agent_mux.compare.applying import AppliedTrial

ExportFormat = Literal["json", "markdown", "html"]
APPLY_TIMEOUT = 3600.0  # seconds: the setup command and the checks run before the answer
_NO_FILES = "files are on another machine; use `patch` or `export`"


class _Page(msgspec.Struct):
    """A page of comparisons."""

    comparisons: list[StoredView]
    next: str | None = None


class _ReportView(msgspec.Struct):
    """The part of a comparison that is its report."""

    report: ComparisonReport


class _CheckView(msgspec.Struct, rename="camel"):
    """The result of a check."""

    name: str
    status: CheckStatus
    detail: str
    is_flaky: bool
    exit_code: int | None
    duration_ms: int


class _AppliedView(msgspec.Struct, rename="camel"):
    """The response to `apply`."""

    trial: str
    source: str
    files: list[str]
    is_merged: bool
    checks: list[_CheckView]
    tampered: list[str] = []


class RemoteComparisons:
    """The comparisons of a service: the interface of `Comparisons`. Every call is a blocking request.

    In addition to the errors of `Comparisons`, every method raises the error that the service returns, and UNAVAILABLE
    when it cannot be reached. Methods that concern files of the service's machine raise `CapabilityError`.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(self, *, limit: int | None = None) -> builtins.list[Comparison]:
        """Return the comparisons, latest first. `limit`: at most so many."""
        views: list[StoredView] = fetch_pages(self._connection, _Page, "comparisons", limit, records="true")
        return [view.record for view in views if view.record is not None]

    def get(self, comparison: str | None = None) -> Comparison:
        """Return a comparison by its id or the beginning of it; default: the latest one. See `Comparisons.get`."""
        name = self.id_of(comparison)
        return record_of(fetch(self._connection, StoredView, "comparisons", name, records="true"))

    def id_of(self, comparison: str | None = None) -> str:
        """Return the id of a comparison by the beginning of it; default: of the latest one. Raises NOT_FOUND."""
        if comparison is not None and RUN_ID.fullmatch(comparison.upper()):
            return comparison.upper()
        limit = 1 if comparison is None else None
        names: builtins.list[str] = [view.id for view in fetch_pages(self._connection, _Page, "comparisons", limit)]
        found = [name for name in names if comparison is None or (comparison and name.startswith(comparison.upper()))]
        if len(found) == 1:
            return found[0]
        if found:
            why = f"{comparison} stands for {len(found)} comparisons: {', '.join(found[:5])}"
        elif comparison is None:
            why = "the service has no comparison; start one with RemoteMux.compare or POST /v1/comparisons"
        else:
            why = f"the service has no comparison {comparison!r}; list them with amux compare list --server URL"
        raise AgentMuxError("NOT_FOUND", why)

    def trial(self, name: str, comparison: str | None = None) -> tuple[Comparison, Trial]:
        """Return a trial by its id, or the first trial of the candidate with this name. Raises NOT_FOUND."""
        found = self.get(comparison)
        return found, trial_named(found, name)

    def patch(self, name: str, comparison: str | None = None) -> bytes:
        """Return the patch of a trial, which `git apply` reproduces byte for byte; empty if it changed nothing."""
        found, trial = self.trial(name, comparison)
        return self._document("comparisons", found.plan.id, "trials", trial.id, "patch")

    def difference(self, first: str, second: str, comparison: str | None = None) -> bytes:
        """Return the difference between the results of two trials. See `Comparisons.difference`."""
        found, left = self.trial(first, comparison)
        _, right = self.trial(second, found.plan.id)
        return self._document("comparisons", found.plan.id, "trials", right.id, "patch", against=left.id)

    def select(self, strategy: str | None = None, comparison: str | None = None) -> "Selection":
        """Return the trial that a strategy selects, or why it selects none. See `Comparisons.select`."""
        from agent_mux.compare.selecting import selection_of  # noqa: PLC0415  # few callers select

        return selection_of(self.get(comparison), strategy)

    def report(self, comparison: str | None = None, *, strategy: str | None = None) -> ComparisonReport:
        """Return the report of a comparison, with what differs between its candidates. See `Comparisons.report`."""
        name, query = self.id_of(comparison), _selecting(strategy)
        view: _ReportView = fetch(self._connection, _ReportView, "comparisons", name, **query)
        return view.report

    def export(self, form: ExportFormat, comparison: str | None = None, *, strategy: str | None = None) -> str:
        """Return a comparison as a document. See `Comparisons.export`."""
        name, query = self.id_of(comparison), _selecting(strategy)
        return self._document("comparisons", name, "export", format=form, **query).decode("utf-8", "replace")

    def apply(self, name: str, comparison: str | None = None, *, has_checks: bool = True) -> "AppliedTrial":
        """Make the changes of a trial in the directory on the service's machine. See `Comparisons.apply`."""
        from agent_mux.compare.applying import AppliedTrial  # noqa: PLC0415  # few callers apply

        found, trial = self.trial(name, comparison)
        path = path_of("comparisons", found.plan.id, "apply")
        body = self._connection.request_blocking(
            "POST", path, {"trial": trial.id, "check": has_checks}, timeout=APPLY_TIMEOUT
        )
        view: _AppliedView = decode_response(body, _AppliedView)
        return AppliedTrial(
            trial=view.trial,
            source=view.source,
            files=tuple(view.files),
            is_merged=view.is_merged,
            checks=tuple(CheckResult(**msgspec.structs.asdict(check)) for check in view.checks),
            tampered=tuple(view.tampered),
        )

    def stop(self, comparison: str) -> str:
        """Abort the active trials of a comparison and return its id when it is over. It can be resumed."""
        name = self.id_of(comparison)
        path = path_of("comparisons", name)
        self._connection.request_blocking("GET", path, is_idempotent=True)  # a silent service is reported soon
        self._connection.request_blocking("POST", f"{path}/stop", {}, is_idempotent=True, timeout=STOP_TIMEOUT)
        return name

    def remove(self, comparison: str) -> str:
        """Remove a comparison with all its records. Returns its id. See `Comparisons.remove`."""
        name = self.id_of(comparison)
        self._connection.request_blocking("DELETE", path_of("comparisons", name))
        return name

    def folder(self, comparison: str | None = None) -> NoReturn:  # noqa: ARG002  # here and below: the signatures of Comparisons
        """Raise `CapabilityError`: the folder is on the service's machine."""
        raise unsupported("reporting the folder of a comparison", _NO_FILES)

    def patch_path(self, comparison: Comparison, patch: StoredPatch) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the file is on the service's machine."""
        raise unsupported("reporting the file of a patch", _NO_FILES)

    def _document(self, *names: str, **parameters: str) -> bytes:
        path = path_of(*names, **parameters)
        return self._connection.request_blocking("GET", path, is_idempotent=True, accept="*/*")


def _selecting(strategy: str | None) -> dict[str, str]:
    return {} if strategy is None else {"select": strategy}
