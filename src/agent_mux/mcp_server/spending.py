"""What all runs of a server cost together."""


class Spending:
    """Sums the last word of each run. Runs of which nobody knows the price count as nothing."""

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._by_run: dict[str, float] = {}

    def see(self, run_id: str, total_usd: float) -> None:
        """A run has cost so much so far, in US dollars."""
        self._by_run[run_id] = max(total_usd, self._by_run.get(run_id, 0.0))

    @property
    def total(self) -> float:
        """US dollars so far."""
        return sum(self._by_run.values())

    @property
    def rest(self) -> float | None:
        """US dollars that are left; None: there is no limit."""
        return None if self._limit is None else max(self._limit - self.total, 0.0)

    @property
    def is_spent(self) -> bool:
        """Nothing is left, though there is a limit."""
        return self._limit is not None and self.total >= self._limit

    @property
    def is_passed(self) -> bool:
        """More was spent than the limit."""
        return self._limit is not None and self.total > self._limit
