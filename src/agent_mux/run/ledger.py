"""The ledger of a run: how many native lines were mapped, deliberately ignored (with the reason), or unknown."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from agent_mux._util.pydantic_support import PydanticCompatible


class Ledger(PydanticCompatible):
    """Counts of native lines. `lines == mapped + ignored + unknown`."""

    def __init__(self) -> None:
        self.lines = 0
        self.ignored: Counter[str] = Counter()
        """Number of ignored lines by native type."""
        self.reasons: dict[str, str] = {}
        """Why lines are ignored, by native type."""
        self.unknown: Counter[str] = Counter()
        """Number of unknown lines by native type."""

    @property
    def mapped(self) -> int:
        """Number of lines that became events or changed the state of the run."""
        return self.lines - self.ignored.total() - self.unknown.total()

    def ignore(self, kind: str, reason: str) -> None:
        """Count a line of a known type that is deliberately not mapped."""
        self.ignored[kind] += 1
        self.reasons.setdefault(kind, reason)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as in `RunResult` and on the wire."""
        return {
            "lines": self.lines,
            "mapped": self.mapped,
            "ignored": dict(sorted(self.ignored.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "unknown": dict(sorted(self.unknown.items())),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Ledger":
        """Return the ledger for the result of `to_dict`."""
        ledger = cls()
        ledger.lines = int(plain["lines"])
        ledger.ignored.update(plain.get("ignored", {}))
        ledger.reasons.update(plain.get("reasons", {}))
        ledger.unknown.update(plain.get("unknown", {}))
        return ledger

    def __repr__(self) -> str:
        return f"<Ledger {self.to_dict()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # mutable
