from pathlib import Path

import pytest

from agent_evaluation.outcomes import TrialOutcome
from agent_mux.compare.ledger import (
    LEDGER,
    AnyFact,
    AttemptEnded,
    AttemptStarted,
    Begun,
    ComparisonFolder,
    Ended,
    Noted,
    TrialEnded,
)
from agent_mux.compare.records import CandidateRecord, ComparisonPlan, Trial, TrialAttempt
from agent_mux.errors import AgentMuxError

PLAN = ComparisonPlan(
    id="01",
    created_at=1,
    version="0",
    prompt="fix it",
    candidates=(CandidateRecord(name="a", kind="agent", agent="a", trials=2),),
    checks=(),
    order=("a-2", "a-1"),
    seed=1,
)
ATTEMPT = TrialAttempt(number=1, run_id="R", started_at=1)
LIMITED = TrialOutcome(verdict="infra", cause="rate_limited")
DONE = Trial(id="a-1", candidate="a", number=1, outcome=TrialOutcome(verdict="pass", cause="completed"))


@pytest.fixture
def folder(tmp_path: Path) -> ComparisonFolder:
    folder = ComparisonFolder.create(tmp_path / "01", PLAN)
    folder.open_ledger()
    return folder


def test_facts_give_the_state(folder: ComparisonFolder) -> None:
    ended = TrialAttempt(number=1, run_id="R", started_at=1, ended_at=2, outcome=LIMITED)
    for fact in (
        Begun(at=1),
        AttemptStarted(at=1, trial="a-2", attempt=ATTEMPT),
        AttemptEnded(at=2, trial="a-2", attempt=ended),
        TrialEnded(at=3, trial=DONE),
        Noted(at=3, text="a note"),
    ):
        folder.append(fact)
    found = folder.comparison()
    assert found.trials == (DONE, Trial(id="a-2", candidate="a", number=2, attempts=(ended,)))
    assert found.notes == ("a note",)
    assert found.status == "active"
    folder.append(Ended(at=4, status="ended"))
    folder.close()
    assert ComparisonFolder(folder.path).comparison().status == "ended"


def test_comparison_of_a_killed_process_is_interrupted(folder: ComparisonFolder) -> None:
    folder.append(Begun(at=1))
    folder.close()
    assert ComparisonFolder(folder.path).comparison().status == "interrupted"


def test_resumed_comparison_is_active_before_its_first_fact(folder: ComparisonFolder) -> None:
    folder.append(Begun(at=1))
    folder.append(Ended(at=2, status="interrupted"))
    folder.close()
    assert folder.comparison().status == "interrupted"
    folder.acquire()
    assert ComparisonFolder(folder.path).comparison().status == "active"


def test_comparison_that_ends_while_it_is_read_is_not_interrupted(
    folder: ComparisonFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ComparisonFolder(folder.path)
    folder.append(Begun(at=1))

    def facts_before_the_end() -> list[AnyFact]:
        found = folder.facts()
        folder.append(Ended(at=2, status="ended"))
        folder.close()
        return found

    monkeypatch.setattr(reader, "facts", facts_before_the_end)
    assert reader.comparison().status == "active"
    monkeypatch.undo()
    assert reader.comparison().status == "ended"


def test_cut_line_is_dropped(folder: ComparisonFolder) -> None:
    folder.append(Noted(at=1, text="whole"))
    folder.close()
    path = folder.path / LEDGER
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"noted","at":2,"te')
    again = ComparisonFolder(folder.path)
    assert [fact.text for fact in again.facts() if isinstance(fact, Noted)] == ["whole"]
    again.acquire()
    again.open_ledger()
    again.append(Noted(at=3, text="next"))
    again.close()
    assert path.read_bytes().startswith(whole)
    assert [fact.text for fact in again.facts() if isinstance(fact, Noted)] == ["whole", "next"]


def test_damaged_line_is_an_error(folder: ComparisonFolder) -> None:
    folder.close()
    (folder.path / LEDGER).write_bytes(b"{}\n")
    with pytest.raises(AgentMuxError, match="is damaged"):
        folder.facts()


def test_comparison_has_one_process(folder: ComparisonFolder) -> None:
    other = ComparisonFolder(folder.path)
    assert other.is_active()
    with pytest.raises(AgentMuxError, match="active in another process"):
        other.acquire()
    folder.close()
    assert not other.is_active()


def test_folder_is_private(folder: ComparisonFolder) -> None:
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / LEDGER).stat().st_mode & 0o777 == 0o600


def test_other_directory_is_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="is not a comparison"):
        ComparisonFolder(tmp_path).comparison()


def test_next_start_clears_why_a_comparison_could_not_be_carried_out(folder: ComparisonFolder) -> None:
    for fact in (Begun(at=1), Ended(at=2, status="interrupted", problem="git failed")):
        folder.append(fact)
    assert folder.comparison().problem == "git failed"
    folder.append(Begun(at=3, is_resumed=True))
    assert folder.comparison().problem == ""
