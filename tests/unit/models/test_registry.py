"""The registry: what is known, what an agent said, and both together."""

import dataclasses
import logging
import stat
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.models.known import BIG, DAY, MODELS, OLD, SMALL, agent, program, registry, said

from agent_mux import AgentMux, RunOptions
from agent_mux.errors import AgentMuxError
from agent_mux.models.current import CurrentModel, current_model
from agent_mux.models.listings import CachedListing, ListingCache, merge_listing
from agent_mux.models.registry import Models
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import Setting
from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price
from agent_mux.settings.resolver import ResolvedOptions

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def models(directory: Path, script: str = "echo big-2 new", adapter: Adapter | None = None) -> Models:
    environ = program(directory / "bin", script)
    return Models(registry(adapter or agent()), directory=directory / "mux", environ=environ, now=lambda: AT)


def listed(*offered: ModelCapabilities) -> CachedListing:
    return CachedListing(agent="toy", at=AT, models=offered)


def test_what_comes_with_us_is_there_without_asking(tmp_path: Path) -> None:
    known = models(tmp_path)
    assert known.list("toy") == MODELS
    assert known.list("toy-agent") == MODELS
    assert known.catalog() == {"toy": MODELS}
    assert known.last_updated("toy") == datetime(2026, 11, 1, tzinfo=UTC)
    assert not known.is_listed_by_agent("toy")
    assert not (tmp_path / "mux").exists()


def test_without_an_agent_every_name_is_there_once(tmp_path: Path) -> None:
    other = dataclasses.replace(agent(models=lambda: (SMALL, replace(OLD, model_id="older"))), agent="other")
    known = Models(registry(agent(), other), directory=tmp_path)
    assert [model.model_id for model in known.list()] == ["small-1.5", "older", "big-2", "big-1"]


def test_agents_without_models_are_not_in_the_catalog(tmp_path: Path) -> None:
    known = models(tmp_path, adapter=agent(models=tuple))
    assert (known.catalog(), known.list("toy"), known.last_updated("toy")) == ({}, (), None)


def test_what_an_agent_says_is_kept_and_counts(tmp_path: Path) -> None:
    known = models(tmp_path)
    offered = known.refresh("toy")
    new = ModelCapabilities(model_id="new", provider="maker", as_of=AT.date())
    assert offered == (replace(BIG, as_of=AT.date()), new)
    assert known.list("toy") == offered
    again = Models(registry(agent()), directory=tmp_path / "mux")
    assert again.list("toy") == offered
    assert again.is_listed_by_agent("toy")
    assert again.last_updated("toy") == AT
    path = tmp_path / "mux" / "cache" / "models" / "toy.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refresh_that_fails_changes_nothing(tmp_path: Path) -> None:
    models(tmp_path).refresh("toy")
    before = models(tmp_path).list("toy")
    with pytest.raises(AgentMuxError) as raised:
        models(tmp_path, "exit 1").refresh("toy")
    assert raised.value.code == "AGENT_CRASH"
    assert models(tmp_path).list("toy") == before


def test_an_agent_that_takes_more_than_it_lists_keeps_the_rest(tmp_path: Path) -> None:
    more = agent(model_listing=ModelListing(argv=(), parse=said, is_complete=False))
    offered = models(tmp_path, adapter=more).refresh("toy")
    assert [model.model_id for model in offered] == ["big-2", "new", "small-1.5", "big-1"]


def test_a_damaged_answer_is_as_good_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = models(tmp_path)
    known.refresh("toy")
    path = ListingCache(tmp_path / "mux").path("toy")
    path.write_text('{"agent": "toy", "models": [{"modelId": 1}]}')
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        assert known.list("toy") == MODELS
    assert f"{path} is damaged" in caplog.text
    known.refresh("toy")
    assert [model.model_id for model in known.list("toy")] == ["big-2", "new"]


def test_a_hostile_name_of_an_agent_stays_in_the_folder(tmp_path: Path) -> None:
    path = ListingCache(tmp_path).path("../../x")
    assert path.parent == tmp_path / "cache" / "models"


@pytest.mark.parametrize(
    ("name", "status"),
    [("new", "ok"), ("big", "alias"), ("small-1.5", "ok"), ("big-1", "deprecated"), ("none", "unknown")],
)
def test_names_are_known_from_both(tmp_path: Path, name: str, status: str) -> None:
    known = models(tmp_path)
    known.refresh("toy")
    assert known.validate("toy", name).status == status


def test_a_model_by_its_name(tmp_path: Path) -> None:
    known = models(tmp_path)
    assert known.get("toy-agent", "big") is BIG
    with pytest.raises(AgentMuxError, match="unknown toy model 'gib-2'; did you mean big-2") as raised:
        known.get("toy", "gib-2")
    assert raised.value.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("call", ["list", "default", "current", "refresh", "last_updated"])
def test_agents_that_nobody_knows(tmp_path: Path, call: str) -> None:
    with pytest.raises(AgentMuxError, match="no agent is named 'toi'"):
        getattr(models(tmp_path), call)("toi")


def test_costs_are_estimated_with_cache_prices(tmp_path: Path) -> None:
    known = models(tmp_path)
    spent = known.estimate_cost(
        "toy", "big", input_tokens=100, output_tokens=10, cached_tokens=200, cache_creation_tokens=40
    )
    assert spent == pytest.approx((100 * 2 + 10 * 10 + 200 * 0.2 + 40 * 2.5) / 1e6)
    assert known.estimate_cost("toy", "big", input_tokens=2000) == pytest.approx(2000 * 4 / 1e6)
    assert known.estimate_cost("toy", "small-1.5", input_tokens=1) is None
    assert known.estimate_cost("toy", "none", input_tokens=1) is None


def test_the_default_of_an_adapter(tmp_path: Path) -> None:
    chosen = models(tmp_path, adapter=agent(default_model="big-2"))
    assert (chosen.default("toy"), chosen.current("toy")) == ("big-2", CurrentModel(model="big-2", source="adapter"))
    left = models(tmp_path, adapter=agent(default_model=None))
    assert (left.default("toy"), left.current("toy")) == (None, CurrentModel(model=None, source="agent"))


def test_who_says_which_model_is_used(tmp_path: Path) -> None:
    """The agent's own files before the adapter, ours before them, the client before those, a profile before all."""
    adapter = agent(default_model="big-2")
    own = {"toy": Setting("small-1.5", "project", Path("/p/toy.json"))}

    def current(sources: dict[str, str], model: str | None = "x") -> CurrentModel:
        settled = ResolvedOptions(options=RunOptions(agent="toy", model=model), sources=sources)
        return current_model(adapter, settled, tmp_path, own.get)

    assert current({}, None) == CurrentModel(model="small-1.5", source="agent config", path="/p/toy.json")
    for path, source in (("config.json", "global config"), ("profiles/fast.json", "profile")):
        said = str(tmp_path / path)
        assert current({"model": said}) == CurrentModel(model="x", source=source, path=said)  # type: ignore[arg-type]
    assert current({"model": "/w/.agent-mux/config.json"}).source == "project config"
    assert current({"model": "the client"}) == CurrentModel(model="x", source="client")


def test_the_clients_own_default_counts(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()), default_model="small-1.5")
    assert mux.models.current("toy", project=tmp_path) == CurrentModel(model="small-1.5", source="client")
    (tmp_path / "config.json").write_text('{"agents": {"toy": {"model": "big"}}}')
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()))
    assert mux.models.current("toy", project=tmp_path) == CurrentModel(
        model="big", source="global config", path=str(tmp_path / "config.json")
    )


def test_the_client_has_them(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()))
    assert mux.models.list("toy") == MODELS
    assert mux.models.can_refresh("toy")


def test_what_the_agent_does_not_say_is_as_it_was_known() -> None:
    bare = ModelCapabilities(model_id="big-2", provider="maker")
    assert merge_listing(listed(bare), MODELS) == (replace(BIG, as_of=AT.date()),)


def test_what_the_agent_says_counts() -> None:
    own = ModelCapabilities(model_id="big-2", provider="other", display_name="Bigger", context_window=272_000,
                            price=Price(3.0, 9.0), thinking_efforts=("high",))  # fmt: skip
    (model,) = merge_listing(listed(own), MODELS)
    assert (model.provider, model.display_name, model.context_window) == ("other", "Bigger", 272_000)
    assert (model.price, model.thinking_efforts, model.max_output_tokens) == (Price(3.0, 9.0), ("high",), 64_000)


def test_rounded_sizes_and_prices_without_long_calls_do_not_replace_exact_ones() -> None:
    rounded = ModelCapabilities(model_id="big-2", provider="maker", context_window=1_000_000, price=Price(2.0, 10.0))
    (model,) = merge_listing(listed(rounded), MODELS)
    assert (model.context_window, model.price) == (BIG.context_window, BIG.price)


def test_a_version_of_a_model_has_not_its_aliases() -> None:
    (model,) = merge_listing(listed(ModelCapabilities(model_id="maker/big-2-20260101", provider="maker")), MODELS)
    assert (model.alias, model.price) == ((), BIG.price)


def test_an_end_that_was_announced_is_not_forgotten() -> None:
    (model,) = merge_listing(listed(ModelCapabilities(model_id="big-1", provider="maker")), MODELS)
    assert (model.deprecated, model.successor, model.retires_on) == (True, "big-2", date(2026, 12, 1))
    assert (OLD.as_of, SMALL.as_of, model.as_of) == (DAY, DAY, AT.date())
