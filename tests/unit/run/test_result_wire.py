"""The wire format of results: encoding and decoding."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.events.event_strategies import EVENTS

from agent_mux import AgentMuxError, RunError, RunResult, TokenUsage
from agent_mux.errors import ERROR_CODES
from agent_mux.events import CostRecord
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import Worktree

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
counts = st.integers(0, 1 << 40)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    made = Ledger()
    made.lines = draw(counts)
    made.ignored = Counter(draw(st.dictionaries(texts, counts, max_size=3)))
    made.reasons = {kind: draw(texts) for kind in made.ignored}
    made.unknown = Counter(draw(st.dictionaries(texts, counts, max_size=3)))
    return made


results = st.builds(
    RunResult,
    run_id=texts,
    agent=texts,
    model=maybe(texts),
    session_id=maybe(texts),
    exit_reason=st.sampled_from(["completed", "failed", "killed", "budget"]),
    exit_code=maybe(st.integers(-1, 255)),
    signal=maybe(st.integers(1, 64)),
    duration_ms=counts,
    turn_count=counts,
    cost=maybe(st.builds(CostRecord, total_usd=st.floats(0, 1e6), input_tokens=counts, output_tokens=counts)),
    token_usage=maybe(st.builds(TokenUsage, counts, counts, maybe(counts), maybe(counts))),
    error=maybe(st.builds(RunError, st.sampled_from(ERROR_CODES), texts, texts, st.booleans())),
    ledger=ledgers(),
    structured_output=maybe(st.dictionaries(texts, counts, max_size=2)),
    tags=st.lists(texts, max_size=3).map(tuple),
    events=maybe(st.lists(EVENTS, max_size=3).map(tuple)),
    journal=maybe(texts),
    worktree=maybe(st.builds(Worktree, path=texts, base_commit=maybe(texts), is_changed=st.booleans())),
    texts=texts.map(lambda text: lambda: [[text]]),
)


@given(results)
def test_written_records_are_read_back(result: RunResult) -> None:
    read = RunResult.from_dict(result.to_dict())
    assert read == result
    assert read.text == result.text
    assert read.to_dict() == result.to_dict()


@pytest.mark.parametrize(
    "plain", [{}, {"runId": "x"}, {"runId": "x", "agent": "a", "exitReason": "completed", "durationMs": "soon"}]
)
def test_other_data_is_a_parse_error(plain: dict[str, Any]) -> None:
    with pytest.raises(AgentMuxError) as caught:
        RunResult.from_dict(plain)
    assert caught.value.code == "PARSE_ERROR"
