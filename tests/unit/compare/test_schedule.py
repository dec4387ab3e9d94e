from msgspec import structs

from agent_evaluation.outcomes import TrialOutcome, TrialVerdict
from agent_mux.compare.records import Trial
from agent_mux.compare.schedule import Lane, Schedule, hopeless_candidates

PASS = TrialOutcome(verdict="pass", cause="completed")
LIMITED = TrialOutcome(verdict="infra", cause="rate_limited")
LANES = {"a": Lane("x", "key"), "b": Lane("x", "key"), "c": Lane("y", "other")}


def trial(candidate: str, number: int = 1, verdict: TrialVerdict | None = None) -> Trial:
    outcome = None if verdict is None else TrialOutcome(verdict=verdict, cause="completed")
    return Trial(id=f"{candidate}-{number}", candidate=candidate, number=number, outcome=outcome)


def schedule(
    *trials: Trial, jobs: int = 10, per_agent: int | None = None, per_credential: int | None = None
) -> Schedule:
    return Schedule(
        trials, LANES, jobs=jobs, jobs_per_agent=per_agent, jobs_per_credential=per_credential, pause_after=2
    )


def started(plan: Schedule) -> list[str]:
    found = []
    while (one := plan.next()) is not None:
        found.append(one.id)
    return found


def test_trials_start_in_order_up_to_the_number_of_jobs() -> None:
    plan = schedule(trial("a"), trial("b"), trial("c"), jobs=2)
    assert started(plan) == ["a-1", "b-1"]
    plan.end(trial("a"), PASS)
    assert started(plan) == ["c-1"]
    assert not plan.is_done


def test_trial_whose_agent_is_at_its_limit_is_overtaken() -> None:
    assert started(schedule(trial("a"), trial("b"), trial("c"), per_agent=1)) == ["a-1", "c-1"]
    assert started(schedule(trial("a"), trial("b"), trial("c"), per_credential=1)) == ["a-1", "c-1"]


def test_finished_trials_do_not_start_again() -> None:
    assert started(schedule(trial("a", 1, "pass"), trial("a", 2))) == ["a-2"]


def test_refusals_in_a_row_pause_all_candidates_with_the_credentials() -> None:
    plan = schedule(*(trial("a", number) for number in range(1, 4)), trial("b"), trial("c"), jobs=1)
    assert started(plan) == ["a-1"]
    assert plan.end(trial("a", 1), LIMITED) is None
    assert started(plan) == ["a-2"]
    assert plan.end(trial("a", 2), LIMITED) == "key"
    assert started(plan) == ["c-1"]
    plan.end(trial("c"), PASS)
    assert plan.is_done
    assert [one.id for one in plan.waiting] == ["a-3", "b-1"]


def test_success_between_refusals_pauses_nothing() -> None:
    plan = schedule(*(trial("a", number) for number in range(1, 5)), jobs=1)
    for number, outcome in ((1, LIMITED), (2, PASS), (3, LIMITED)):
        assert started(plan) == [f"a-{number}"]
        plan.end(trial("a", number), outcome)
    assert started(plan) == ["a-4"]


def test_candidate_is_hopeless_if_its_open_trials_cannot_reach_the_best() -> None:
    trials = [
        *(trial("a", number, "pass") for number in (1, 2, 3)),
        trial("b", 1, "fail"),
        trial("b", 2, "fail"),
        trial("b", 3),
        trial("c", 1),
        trial("c", 2),
        trial("c", 3),
    ]
    assert hopeless_candidates(trials) == {"b"}
    assert hopeless_candidates([structs.replace(one, outcome=None) for one in trials]) == set()
