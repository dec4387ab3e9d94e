"""The comparisons in the service's directory: their records, who requested them, and why one failed.

`<config dir>/service/comparisons/<id>/` is the folder of a comparison as the library has it, with two files of ours.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent_mux._util.files import write_text
from agent_mux.compare.ledger import COMPARISONS, ComparisonFolder
from agent_mux.compare.records import Comparison, Trial
from agent_mux.compare.store import Comparisons
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import RUN_ID

REQUESTER, FAILURE = "service.json", "failure.json"


class Requester(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who requested a comparison."""

    owner: str = ""
    """Name of the token."""
    idempotency_key: str | None = None
    fingerprint: str = ""
    """SHA-256 of the request."""


class ComparisonFailure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a comparison could not be carried out to its end."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredComparison:
    """A comparison with what the service stores beside its records."""

    record: Comparison
    requester: Requester
    failure: ComparisonFailure | None


class ComparisonStore:
    """The comparisons of one service. All methods block."""

    def __init__(self, directory: Path) -> None:
        """`directory`: the service's own directory."""
        self._directory = directory / COMPARISONS
        self.comparisons = Comparisons(directory)

    def ids(self) -> list[str]:
        """Return the ids of all comparisons, latest first."""
        try:
            names = [entry.name for entry in os.scandir(self._directory) if RUN_ID.fullmatch(entry.name)]
        except FileNotFoundError:
            return []
        return sorted(names, reverse=True)

    def get(self, comparison_id: str) -> StoredComparison:
        """Return a comparison. Raises NOT_FOUND; CONFIG_ERROR if its records cannot be read."""
        folder = self.folder(comparison_id)
        return StoredComparison(
            record=folder.comparison(), requester=self.requester(comparison_id), failure=_failure(folder.path)
        )

    def page(self, before: str | None) -> Iterator[StoredComparison]:
        """Yield the comparisons that are older than `before`, latest first. Those that cannot be read are skipped."""
        for name in self.ids():
            if before is None or name < before:
                with contextlib.suppress(AgentMuxError):
                    yield self.get(name)

    def folder(self, comparison_id: str) -> ComparisonFolder:
        """Return the folder of a comparison. Raises NOT_FOUND."""
        path = self._directory / comparison_id
        if RUN_ID.fullmatch(comparison_id) is None or not path.is_dir():
            shown = comparison_id if RUN_ID.fullmatch(comparison_id) else "with this id"
            raise AgentMuxError("NOT_FOUND", f"no comparison {shown}; list comparisons with GET /v1/comparisons")
        return ComparisonFolder(path)

    def trial(self, comparison_id: str, trial: str) -> tuple[Comparison, Trial]:
        """Return a comparison and one of its trials, by its id. Raises NOT_FOUND."""
        record = self.folder(comparison_id).comparison()
        return record, find_trial(record, trial)

    def requester(self, comparison_id: str) -> Requester:
        """Return who requested a comparison; an empty requester if that was not stored before a kill."""
        try:
            return msgspec.json.decode((self._directory / comparison_id / REQUESTER).read_bytes(), type=Requester)
        except (OSError, msgspec.MsgspecError):
            return Requester()

    def set_requester(self, comparison_id: str, requester: Requester) -> None:
        """Store who requested a comparison. Raises `OSError`."""
        write_text(self._directory / comparison_id / REQUESTER, msgspec.json.encode(requester).decode() + "\n")

    def find_by_key(self, owner: str, key: str) -> tuple[str, Requester] | None:
        """Return the comparison that a request with this idempotency key created."""
        for name in self.ids():
            requester = self.requester(name)
            if (requester.owner, requester.idempotency_key) == (owner, key):
                return name, requester
        return None

    def set_failure(self, comparison_id: str, error: AgentMuxError | None) -> None:
        """Store why a comparison failed; None removes the record. Raises `OSError`."""
        path = self._directory / comparison_id / FAILURE
        if error is None:
            path.unlink(missing_ok=True)
        else:
            failure = ComparisonFailure(code=error.code, message=error.message)
            write_text(path, msgspec.json.encode(failure).decode() + "\n")


def find_trial(record: Comparison, trial: str) -> Trial:
    """Return a trial of a comparison by its id. Raises NOT_FOUND."""
    for one in record.trials:
        if one.id == trial:
            return one
    known: Sequence[str] = [one.id for one in record.trials[:10]]
    raise AgentMuxError("NOT_FOUND", f"comparison {record.plan.id} has no such trial; it has: {', '.join(known)}")


def _failure(folder: Path) -> ComparisonFailure | None:
    try:
        return msgspec.json.decode((folder / FAILURE).read_bytes(), type=ComparisonFailure)
    except (OSError, msgspec.MsgspecError):
        return None
