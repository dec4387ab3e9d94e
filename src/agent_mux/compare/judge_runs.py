"""An agent as the judge: it compares trials in pairs, blind and in both orders, where checks do not decide.

Each judgement is a run of its own in an empty directory, without any permission. It is in the ledger before the next
step, so that an interrupted comparison resumes with the missing ones.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from msgspec import structs

from agent_evaluation.strategies.judging import VERDICT_SCHEMA, Attempt, build_prompt, ordered_pairs, parse_verdict
from agent_evaluation.strategies.selecting import select
from agent_mux._util.files import make_directory
from agent_mux._util.sanitize import one_line
from agent_mux._util.ulids import new_ulid
from agent_mux.compare.candidates import parse_candidate
from agent_mux.compare.ledger import AnyFact, Judged, Noted
from agent_mux.compare.observation import usage_of
from agent_mux.compare.places import Places
from agent_mux.compare.records import Comparison, Judgement, Trial
from agent_mux.compare.selecting import views_of
from agent_mux.compare.trials import RunClient, now
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.redaction import Redactor, secret_values
from agent_mux.run.handle import RunHandle
from agent_mux.run.plan import RunPlan
from agent_mux.run.result import RunResult
from agent_mux.worktrees.removal import remove_directory

MAX_JUDGED = 6  # trials: 30 judgements
MAX_REASON = 500  # characters
MAX_READ = 1 << 20  # bytes of a patch
TIMEOUT = 600.0  # seconds of one judgement
_JUDGE = "judge:"
_OPTIONAL: tuple[Mapping[str, Any], ...] = (
    {"output_schema": VERDICT_SCHEMA, "no_session": True},
    {"output_schema": VERDICT_SCHEMA},
    {"no_session": True},
    {},
)
"""Options that are added to a judge's run: the first set that its agent supports."""


def trials_to_judge(comparison: Comparison) -> tuple[Trial, ...]:
    """Return the trials that checks leave equal: those that passed; without checks, those whose run completed."""
    eligible = set(select("llm-judge", views_of(comparison)).ranking)
    found = tuple(trial for trial in comparison.trials if trial.id in eligible)
    return found if len(found) > 1 else ()


def judge_run_name(first: str, second: str) -> str:
    """Return the name of the run that compares two trials. No trial has such a name."""
    return f"{_JUDGE}{first}:{second}"


def is_judge_run(name: str) -> bool:
    """Return whether a run with this name is one of the judge."""
    return name.startswith(_JUDGE)


def most_judge_runs(trials: int) -> int:
    """Return how many runs a judge makes at most if so many trials can pass."""
    judged = min(trials, MAX_JUDGED)
    return judged * (judged - 1)


def plan_judge(starter: RunClient, judge: str, prompt: str, **fields: Any) -> RunPlan:
    """Plan a run of the judge, with a schema for its answer and without a session where its agent supports that.

    Blocking. Raises as `AgentMux.plan`.
    """
    options = parse_candidate(judge).options
    given = {"timeout": TIMEOUT, **options, "prompt": prompt, "approval_mode": "deny", "track_changes": False, **fields}
    for added in _OPTIONAL[:-1]:
        try:
            return starter.plan(**given, **added)
        except CapabilityError:
            continue
    return starter.plan(**given)


class PairJudge:
    """Has the pairs of a comparison judged."""

    def __init__(  # noqa: PLR0913, PLR0917  # of one caller
        self,
        judge: str,
        starter: RunClient,
        places: Places,
        append: Callable[[AnyFact], Awaitable[None]],
        result_of: Callable[[RunHandle], Awaitable[RunResult]],
        on_run: Callable[[str, RunHandle], None],
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare.

        Args:
            judge: The agent, as a candidate is written.
            starter: The client that runs it.
            places: Where its runs work and are recorded.
            append: Records a fact.
            result_of: Waits for a run, and aborts it if the comparison stops.
            on_run: Called with the name and the handle of each run, before it has any event.
            env: Variables of all runs of the comparison.
        """
        self._judge = judge
        self._env = dict(env or {})
        self._starter = starter
        self._places = places
        self._append = append
        self._result_of = result_of
        self._on_run = on_run
        self._redactor = Redactor(secret_values({**os.environ, **self._env}))

    async def run(self, comparison: Comparison, is_wanted: Callable[[], bool]) -> None:
        """Judge every pair in both orders that has no verdict yet. Raises CONFIG_ERROR for the ledger."""
        trials = trials_to_judge(comparison)
        if len(trials) > MAX_JUDGED:
            left = ", ".join(trial.id for trial in trials[MAX_JUDGED:])
            text = f"the judge compares the first {MAX_JUDGED} trials that passed; not compared: {left}"
            if text not in comparison.notes:
                await self._append(Noted(at=now(), text=text))
            trials = trials[:MAX_JUDGED]
        by_id = {trial.id: trial for trial in trials}
        known = {(one.first, one.second) for one in comparison.judgements if not one.problem}
        for first, second in ordered_pairs(by_id):
            if (first, second) not in known and is_wanted():
                judgement = await self._ask(comparison, by_id[first], by_id[second])
                if is_wanted():  # an aborted run is repeated by `resume`
                    await self._append(Judged(at=now(), judgement=judgement))

    async def _ask(self, comparison: Comparison, first: Trial, second: Trial) -> Judgement:
        hidden = hidden_names(comparison)
        attempts = [await to_thread.run_sync(self._attempt, trial) for trial in (first, second)]
        prompt = build_prompt(comparison.plan.prompt, attempts[0], attempts[1], hidden_names=hidden)
        run_id, directory = new_ulid(), self._places.new_workspace()
        make_directory(directory)
        empty = Judgement(first=first.id, second=second.id, preferred=None, run_id=run_id)
        try:
            fields: dict[str, Any] = {"env": self._env} if self._env else {}
            fields |= {"run_id": run_id, "cwd": str(directory), "journal": str(self._places.judgement(run_id))}
            plan = await to_thread.run_sync(partial(plan_judge, self._starter, self._judge, prompt, **fields))
            run = self._starter.run(self._places.isolate(plan, directory))
            self._on_run(judge_run_name(first.id, second.id), run)
            result = await self._result_of(run)
        except AgentMuxError as error:
            return _changed(empty, problem=one_line(error.message, MAX_REASON))
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_directory, directory)
        return self._judgement(empty, result)

    def _judgement(self, empty: Judgement, result: RunResult) -> Judgement:
        cost = usage_of(result).cost_usd
        answer = result.text if result.structured_output is None else result.structured_output
        verdict = None if result.error is not None else parse_verdict(answer, empty.first, empty.second)
        if verdict is None:
            problem = result.error.message if result.error is not None else f"no verdict in its answer: {result.text}"
            return _changed(empty, problem=self._line(problem), cost_usd=cost)
        preferred, reason = verdict
        return _changed(empty, preferred=preferred, reason=self._line(reason), cost_usd=cost)

    def _line(self, text: str) -> str:
        return one_line(self._redactor.mask_text(text), MAX_REASON)

    def _attempt(self, trial: Trial) -> Attempt:
        text = "" if trial.last is None else trial.last.text
        patch = "" if trial.patch is None else _read(self._places.folder / trial.patch.path)
        return Attempt(id=trial.id, patch=self._redactor.mask_text(patch), text=self._redactor.mask_text(text))


def hidden_names(comparison: Comparison) -> tuple[str, ...]:
    """Return the names by which a judge could recognize an agent or a candidate."""
    of_candidates = (
        name
        for candidate in comparison.plan.candidates
        for name in (candidate.name, candidate.agent, candidate.model, candidate.profile)
    )
    used = (attempt.usage.model for trial in comparison.trials for attempt in trial.attempts)
    ids = (trial.id for trial in comparison.trials)
    return tuple(sorted({name for name in (*of_candidates, *used, *ids) if name}))


def _changed(judgement: Judgement, **values: Any) -> Judgement:
    return structs.replace(judgement, **values)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_READ).decode("utf-8", "replace")
    except OSError as error:
        return f"(the patch cannot be read: {error.strerror or error})"
