"""Costs of sessions: each call counts once, and amounts from different sources are kept apart."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.scripted_store import DAY, START, sessions_in, write_session

from agent_mux.sessions.spending import UsageTotals
from agent_mux.sessions.summary import SessionFilter

BIG = 1000 * 10 / 1e6 + 100 * 20 / 1e6  # USD, of one call below
SMALL = BIG / 10


def call(key: str, model: str = "big", at: int = START, **fields: Any) -> dict[str, Any]:
    return {"call": key, "model": model, "tokens": [1000, 100], "at": at, **fields}


def amounts(sums: dict[str, UsageTotals]) -> dict[str, tuple[Any, Any, int, int]]:
    return {
        name: (pytest.approx(one.native_usd), pytest.approx(one.computed_usd), one.calls, one.unknown_calls)
        for name, one in sums.items()
    }


def test_a_call_costs_the_native_amount_or_the_list_price(tmp_path: Path) -> None:
    write_session(tmp_path, "one", call("a"), call("b", "small"), call("c", usd=0.5), call("d", "unpriced"))
    assert amounts(sessions_in(tmp_path).total_cost()) == {"scripted": (0.5, BIG + SMALL, 4, 1)}
    [summary] = sessions_in(tmp_path).list()
    assert (summary.cost.total_usd, summary.cost.source) == (pytest.approx(0.5 + BIG + SMALL), "computed")
    assert (summary.cost.input_tokens, summary.cost.output_tokens) == (4000, 400)


@pytest.mark.parametrize(
    ("rows", "source"),
    [
        ([], "unknown"),
        ([call("a", "unpriced")], "unknown"),
        ([call("a", usd=1.0)], "native"),
        ([call("a")], "computed"),
    ],
)
def test_a_sum_states_its_source(tmp_path: Path, rows: list[dict[str, Any]], source: str) -> None:
    write_session(tmp_path, "one", {"prompt": "x"}, *rows)
    [summary] = sessions_in(tmp_path).list()
    assert summary.cost.source == source


def test_a_call_stored_twice_counts_once_with_its_last_figures(tmp_path: Path) -> None:
    write_session(tmp_path, "one", call("a"), {**call("a"), "tokens": [1000, 200]}, call(""), call(""))
    [summary] = sessions_in(tmp_path).list()
    assert (summary.cost.input_tokens, summary.cost.output_tokens) == (3000, 400)


def test_a_copy_of_a_call_is_not_counted(tmp_path: Path) -> None:
    first = ({"prompt": "first", "at": START}, call("a", at=START + 1))
    write_session(tmp_path, "origin", *first)
    write_session(tmp_path, "fork", *first, call("b", at=START + DAY))
    assert amounts(sessions_in(tmp_path).total_cost()) == {"scripted": (0, 2 * BIG, 2, 0)}


def test_a_copied_call_counts_in_the_older_session(tmp_path: Path) -> None:
    write_session(tmp_path, "origin", {"session": "origin", "cwd": "/first", "at": START}, call("a", at=START + 1))
    copied = call("a", at=START + 1)
    write_session(tmp_path, "fork", {"session": "fork", "cwd": "/second", "at": START}, copied, call("b", at=START + 2))
    sessions = sessions_in(tmp_path)
    assert amounts(sessions.total_cost(SessionFilter(cwd="/second"))) == {"scripted": (0, BIG, 1, 0)}
    assert amounts(sessions.total_cost(SessionFilter(cwd="/first"))) == {"scripted": (0, BIG, 1, 0)}


def test_a_native_total_is_divided_among_the_calls(tmp_path: Path) -> None:
    write_session(tmp_path, "one", call("a"), call("b", "small"), {"spent": 1.0}, {"spent": 2.2})
    by_model = sessions_in(tmp_path).total_cost(group_by="model")
    assert amounts(by_model) == {"big": (2.0, 0, 1, 0), "small": (pytest.approx(0.2), 0, 1, 0)}


def test_a_native_total_without_calls_counts_as_one_call(tmp_path: Path) -> None:
    write_session(tmp_path, "one", {"prompt": "x", "at": START}, {"spent": 1.5})
    assert amounts(sessions_in(tmp_path).total_cost(group_by="model")) == {"unknown": (1.5, 0, 1, 0)}


def test_a_native_total_is_divided_by_tokens_without_prices(tmp_path: Path) -> None:
    write_session(tmp_path, "one", call("a"), {**call("b", "unpriced"), "tokens": [3000, 300]}, {"spent": 4.0})
    assert amounts(sessions_in(tmp_path).total_cost(group_by="model")) == {
        "unpriced": (3.0, 0, 1, 0), "big": (1.0, 0, 1, 0),
    }  # fmt: skip


def test_days_are_those_of_the_calls_in_order(tmp_path: Path) -> None:
    write_session(tmp_path, "one", call("b", at=START + DAY), call("a"), call("c", "small", at=START + DAY + 1))
    days = [datetime.fromtimestamp(at / 1000, UTC).astimezone().date().isoformat() for at in (START, START + DAY)]
    assert list(sessions_in(tmp_path).total_cost(group_by="day")) == days


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (SessionFilter(since=START + 1), 2),
        (SessionFilter(until=START + 1), 1),
        (SessionFilter(since=datetime.fromtimestamp((START + DAY) / 1000, UTC), model="small"), 1),
        (SessionFilter(model="big"), 2),
    ],
)
def test_only_calls_that_match_the_filter_count(tmp_path: Path, wanted: SessionFilter, calls: int) -> None:
    write_session(tmp_path, "one", call("a"), call("b", at=START + DAY), call("c", "small", at=START + DAY))
    [total] = sessions_in(tmp_path).total_cost(wanted).values()
    assert total.calls == calls
