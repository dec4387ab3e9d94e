"""Prices: what calls cost, which model a name means, and the costs in events."""

import pytest

from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux.sdk.models import ModelCapabilities, Price, cost_in_usd, find_price, prices_of
from agent_mux_adapters._models import models_of

PRICE = Price(2.0, 10.0, 0.5, 4.0)
PRICES = {"m-1": PRICE}
USAGE = facts.Usage(1_000_000, 100_000, thinking_tokens=5, cached_tokens=200_000, cache_creation_tokens=10_000)
DOLLARS = 2.0 + 1.0 + 0.1 + 0.04


def stream(*emitted: facts.Fact, prices: dict[str, Price] | None = None, model: str | None = "m-1") -> list[object]:
    context = StreamContext(run_id="r", agent="a", prices=PRICES if prices is None else prices, model=model)
    assembler = StreamAssembler(context)
    for fact in emitted:
        assembler.receive(fact)
    assembler.end(Ending(code=0))
    return list(assembler.drain())


def costs(events: list[object], kind: str) -> list[CostRecord | None]:
    return [event.cost for event in events if event.type == kind]  # type: ignore[attr-defined]


def test_each_kind_of_token_has_its_price() -> None:
    spent = cost_in_usd(PRICE, input_tokens=1_000_000, output_tokens=100_000, cached_tokens=200_000,
                        cache_creation_tokens=10_000)  # fmt: skip
    assert spent == pytest.approx(DOLLARS)


def test_tokens_without_a_price_cost_the_input_price() -> None:
    assert cost_in_usd(Price(1.0, 2.0), input_tokens=0, output_tokens=0, cached_tokens=500_000,
                       cache_creation_tokens=500_000) == pytest.approx(1.0)  # fmt: skip


@pytest.mark.parametrize(("going_in", "dollars"), [(200, 200e-6), (201, 402e-6)])
def test_long_call_has_the_higher_price_for_all_tokens(going_in: int, dollars: float) -> None:
    price = Price(1.0, 1.0, threshold=200, beyond=Price(2.0, 2.0))
    spent = cost_in_usd(price, input_tokens=going_in - 100, output_tokens=0, cached_tokens=100)
    assert spent == pytest.approx(dollars)


def test_sum_of_calls_has_the_price_of_short_calls() -> None:
    price = Price(1.0, 1.0, threshold=10, beyond=Price(3.0, 3.0))
    spent = cost_in_usd(price, input_tokens=20, output_tokens=0, of_one_call=False)
    assert spent == pytest.approx(20e-6)
    together = facts.Usage(20, 0, of_one_call=False)
    assert costs(stream(together, facts.TurnDone(), prices={"m-1": price}), "session_end")[0].total_usd == spent  # type: ignore[union-attr]
    total = CostRecord(total_usd=0.0, input_tokens=20, output_tokens=0, source="unknown")
    assert costs(stream(facts.TurnDone(total), prices={"m-1": price}), "session_end")[0].total_usd == spent  # type: ignore[union-attr]
    [one] = costs(stream(facts.Usage(20, 0), facts.TurnDone(), prices={"m-1": price}), "session_end")
    assert one is not None
    assert one.total_usd == pytest.approx(60e-6)


@pytest.mark.parametrize("name", ["m-1", "provider/m-1", "m-1-20260101", "provider/m-1-2026-01-01", "m-1@20260101"])
def test_names_that_mean_a_model(name: str) -> None:
    assert find_price(PRICES, name) is PRICE


@pytest.mark.parametrize("name", ["m-2", "m-1-mini", "", None, "m-1/x"])
def test_names_that_mean_no_model(name: str | None) -> None:
    assert find_price(PRICES, name) is None


def test_aliases_have_the_price_of_their_model() -> None:
    models = [ModelCapabilities(model_id="a", provider="p", alias=("b",), price=PRICE),
              ModelCapabilities(model_id="c", provider="p")]  # fmt: skip
    assert prices_of(models) == {"a": PRICE, "b": PRICE}


def test_prices_by_bare_name_if_unambiguous() -> None:
    other = Price(1.0, 1.0)
    models = [ModelCapabilities(model_id=name, provider="p", price=price) for name, price in
              [("p/a", PRICE), ("q/a", PRICE), ("r/a", other), ("p/b", other)]]  # fmt: skip
    prices = prices_of(models)
    assert prices == {"a": PRICE, "r/a": other, "b": other}
    assert [find_price(prices, name) for name in ("q/a-20260101", "r/a", "a", "x/b")] == [PRICE, other, PRICE, other]


def test_usage_is_priced_as_computed() -> None:
    events = stream(facts.SessionKnown("s"), facts.TurnBegin(), USAGE, facts.TurnDone())
    (turn,) = costs(events, "turn_end")
    assert turn is not None
    assert turn.source == "computed"
    assert turn.total_usd == pytest.approx(DOLLARS)
    assert costs(events, "cost") == [turn]
    assert costs(events, "session_end") == [turn]


def test_reported_model_determines_the_price() -> None:
    known = facts.SessionKnown("s", model="m-1")
    assert costs(stream(known, USAGE, facts.TurnDone(), model="other"), "session_end")[0].source == "computed"  # type: ignore[union-attr]


def test_cost_without_a_price_is_unknown() -> None:
    (total,) = costs(stream(facts.TurnBegin(), USAGE, facts.TurnDone(), model="other"), "session_end")
    assert total is not None
    assert (total.source, total.total_usd, total.input_tokens) == ("unknown", 0.0, 1_000_000)


def test_reported_cost_takes_precedence() -> None:
    native = CostRecord(total_usd=7.0, input_tokens=1, output_tokens=1, source="native")
    events = stream(facts.TurnBegin(), USAGE, facts.RunCost(native), facts.TurnDone(native))
    assert costs(events, "session_end") == [native]
    assert costs(events, "cost") == [native]


def test_usage_without_amount_is_priced_by_its_calls() -> None:
    long = Price(1.0, 1.0, threshold=10, beyond=Price(3.0, 3.0))
    total = CostRecord(total_usd=0.0, input_tokens=16, output_tokens=0, source="unknown")
    events = stream(facts.Usage(8, 0), facts.Usage(8, 0), facts.TurnDone(total), prices={"m-1": long})
    assert costs(events, "session_end")[0].total_usd == pytest.approx(16e-6)  # type: ignore[union-attr]


def test_crash_loses_no_tokens() -> None:
    events = stream(USAGE, facts.TurnDone(), facts.TurnBegin(), USAGE)
    (total,) = costs(events, "session_end")
    assert total is not None
    assert total.input_tokens == 2_000_000


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_price_lists_are_valid(provider: str) -> None:
    models = models_of(provider)()
    assert len({name for m in models for name in (m.model_id, *m.alias)}) == sum(1 + len(m.alias) for m in models)
    for model in models:
        assert model.provider == provider
        assert model.price is not None
        assert 0 < model.price.input <= model.price.output
        assert model.price.cached_input is None or model.price.cached_input < model.price.input
        assert (model.price.threshold is None) == (model.price.beyond is None)
        assert model.context_window is not None
        assert model.max_output_tokens is not None
        assert model.max_output_tokens <= model.context_window
