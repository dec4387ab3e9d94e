"""What became of every native line: mapped, deliberately ignored (with the reason), or unknown."""

from collections import Counter
from collections.abc import Mapping
from typing import Any


class Ledger:
    """Counts of native lines. `lines == mapped + ignored + unknown`."""

    def __init__(self) -> None:
        self.lines = 0
        self.ignored: Counter[str] = Counter()
        """Native type -> how many."""
        self.reasons: dict[str, str] = {}
        """Native type -> why it is ignored."""
        self.unknown: Counter[str] = Counter()
        """Native type -> how many."""

    @property
    def mapped(self) -> int:
        """Lines that became events or changed the state of the run."""
        return self.lines - self.ignored.total() - self.unknown.total()

    def ignore(self, kind: str, reason: str) -> None:
        """One more line that is known and deliberately not mapped."""
        self.ignored[kind] += 1
        self.reasons.setdefault(kind, reason)

    def to_dict(self) -> dict[str, Any]:
        """As it is shown in `RunResult` and on the wire."""
        return {
            "lines": self.lines,
            "mapped": self.mapped,
            "ignored": dict(sorted(self.ignored.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "unknown": dict(sorted(self.unknown.items())),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Ledger":
        """The inverse of `to_dict`."""
        made = cls()
        made.lines = int(plain["lines"])
        made.ignored.update(plain.get("ignored", {}))
        made.reasons.update(plain.get("reasons", {}))
        made.unknown.update(plain.get("unknown", {}))
        return made

    def __repr__(self) -> str:
        return f"<Ledger {self.to_dict()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # mutable
