"""The schedule of a comparison: which trial may start next. Pure; the engine asks and reports.

Trials start in the shuffled order of the plan. A trial waits if its agent or its credentials are at their limit; later
ones may overtake it. Credentials whose provider refused several times in a row are paused: their trials stay planned.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_evaluation.outcomes import TrialOutcome
from agent_mux.compare.records import Trial


@dataclass(frozen=True, slots=True)
class Lane:
    """What limits the trials of a candidate in addition to the number of jobs."""

    agent: str
    credential: str
    """Names the credentials, without containing them."""


class Schedule:
    """Chooses the next trial, and learns from outcomes."""

    def __init__(  # noqa: PLR0913  # the limits of a comparison
        self,
        trials: Sequence[Trial],
        lanes: Mapping[str, Lane],
        *,
        jobs: int,
        jobs_per_agent: int | None,
        jobs_per_credential: int | None,
        pause_after: int,
    ) -> None:
        """Plan the trials that have no outcome yet, in this order. `lanes`: by the name of the candidate."""
        self._waiting = [trial for trial in trials if trial.outcome is None]
        self._lanes = lanes
        self._jobs = jobs
        self._jobs_per_agent = jobs_per_agent
        self._jobs_per_credential = jobs_per_credential
        self._pause_after = pause_after
        self._active: dict[str, Trial] = {}
        self._refusals: Counter[str] = Counter()
        self.paused: set[str] = set()
        """Credentials with which no further trial is started."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is active and nothing may start."""
        return not self._active and not any(self._may_ever_start(trial) for trial in self._waiting)

    @property
    def waiting(self) -> Sequence[Trial]:
        """The trials that have not started, in their order."""
        return tuple(self._waiting)

    def next(self) -> Trial | None:
        """Return the next trial, which is active from now on; None if none may start now."""
        if len(self._active) >= self._jobs:
            return None
        for trial in self._waiting:
            if self._may_start(trial):
                self._waiting.remove(trial)
                self._active[trial.id] = trial
                return trial
        return None

    def end(self, trial: Trial, outcome: TrialOutcome) -> str | None:
        """Report that an active trial has its outcome. Returns the credentials that are paused from now on, if any."""
        del self._active[trial.id]
        credential = self._lanes[trial.candidate].credential
        if outcome.cause != "rate_limited":
            self._refusals[credential] = 0
            return None
        self._refusals[credential] += 1
        if self._refusals[credential] < self._pause_after or credential in self.paused:
            return None
        self.paused.add(credential)
        return credential

    def drop(self, candidate: str) -> list[Trial]:
        """Remove the waiting trials of a candidate, and return them."""
        dropped = [trial for trial in self._waiting if trial.candidate == candidate]
        self._waiting = [trial for trial in self._waiting if trial.candidate != candidate]
        return dropped

    def _may_ever_start(self, trial: Trial) -> bool:
        return self._lanes[trial.candidate].credential not in self.paused

    def _may_start(self, trial: Trial) -> bool:
        lane = self._lanes[trial.candidate]
        active = [self._lanes[one.candidate] for one in self._active.values()]
        of_agent = sum(one.agent == lane.agent for one in active)
        of_credential = sum(one.credential == lane.credential for one in active)
        return (
            self._may_ever_start(trial)
            and (self._jobs_per_agent is None or of_agent < self._jobs_per_agent)
            and (self._jobs_per_credential is None or of_credential < self._jobs_per_credential)
        )


def hopeless_candidates(trials: Sequence[Trial]) -> set[str]:
    """Return the candidates whose remaining trials cannot give them as many passes as another one has already."""
    names = dict.fromkeys(trial.candidate for trial in trials)
    passes = {name: _count(trials, name, "pass") for name in names}
    open_trials = {name: sum(trial.candidate == name and trial.outcome is None for trial in trials) for name in names}
    best = max(passes.values(), default=0)
    return {name for name in names if open_trials[name] and passes[name] + open_trials[name] < best}


def _count(trials: Sequence[Trial], candidate: str, verdict: str) -> int:
    return sum(
        trial.candidate == candidate and trial.outcome is not None and trial.outcome.verdict == verdict
        for trial in trials
    )
