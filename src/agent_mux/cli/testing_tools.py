"""The tools of the distribution `agent-mux-testing` that commands use.

They are found by the entry-point group `agent_mux.testing`; agent_mux never imports that distribution. The protocols
here are the interface between the two.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_mux.errors import MissingExtraError

if TYPE_CHECKING:
    from agent_mux.journal.records import Header, Record
    from agent_mux.run.derivation import CodecFactory
    from agent_mux.sdk.adapter import Adapter
    from agent_mux.sdk.registry import AdapterRegistry

GROUP = "agent_mux.testing"
EXTRA = "testing"


class DriftReport(Protocol):
    """How an installed CLI differs from its baseline; no findings if it does not."""

    @property
    def agent(self) -> str: ...
    @property
    def scenarios(self) -> Sequence[str]: ...
    @property
    def findings(self) -> Sequence[str]: ...


class DriftCheck(Protocol):
    """Compare these installed agents with their baselines, offline; all that have one for an empty sequence."""

    def __call__(self, agents: Sequence[str]) -> Iterable[DriftReport]: ...


class TortureRow(Protocol):
    """The outcome of a torture case."""

    @property
    def case(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def verdict(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def settle(self) -> float | None: ...
    @property
    def peak_mib(self) -> float | None: ...
    @property
    def findings(self) -> Sequence[str]: ...
    def to_dict(self) -> dict[str, Any]: ...


class RunTorture(Protocol):
    """Play torture cases on the running event loop; all cases for `None`."""

    async def __call__(
        self, names: Iterable[str] | None, *, full: bool, on_row: Callable[[TortureRow], object] | None
    ) -> Sequence[TortureRow]: ...


class SaveRun(Protocol):
    """Write the run of a journal as a fixture folder."""

    def __call__(self, journal: Path, folder: Path, adapter: "Adapter", *, version: str, note: str) -> object: ...


class OpenFixture(Protocol):
    """Return the header, the codec and the records of a fixture folder. Raise VALIDATION_ERROR for other folders."""

    def __call__(
        self, folder: Path, adapters: "AdapterRegistry"
    ) -> "tuple[Header, CodecFactory, Iterable[Record]]": ...


def load_drift_check(command: str) -> DriftCheck:
    """Return the function that compares installed agents with their baselines, for `amux doctor --drift`."""
    check: DriftCheck = _load("drift", command)
    return check


def load_torture(command: str) -> RunTorture:
    """Return the function that plays torture cases, for `amux doctor --torture`."""
    run: RunTorture = _load("torture", command)
    return run


def load_recorder(command: str) -> SaveRun:
    """Return the function that saves a run as a fixture, for `amux record`."""
    save: SaveRun = _load("record", command)
    return save


def load_fixture_reader(command: str) -> OpenFixture:
    """Return the function that reads fixture folders, for `amux replay FOLDER`."""
    read: OpenFixture = _load("fixture", command)
    return read


def _load(name: str, command: str) -> Any:
    """Load the tool of this name. Raise MissingExtraError if the extra is not installed."""
    for point in entry_points(group=GROUP, name=name):
        return point.load()
    raise MissingExtraError(command, EXTRA)
