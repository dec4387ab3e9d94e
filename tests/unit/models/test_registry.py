"""The registry: included models, listed models, and both merged."""

import dataclasses
import logging
import stat
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.models.known import BIG, DAY, MODELS, OLD, SMALL, agent, parse_listing, program, registry

from agent_mux import AgentMux, RunOptions
from agent_mux.errors import AgentMuxError
from agent_mux.models.current import CurrentModel, current_model
from agent_mux.models.listings import CachedListing, ListingCache, merge_listing
from agent_mux.models.registry import Models
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import ConfigSetting
from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price
from agent_mux.settings.resolver import ResolvedOptions

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def models(directory: Path, script: str = "echo big-2 new", adapter: Adapter | None = None) -> Models:
    environ = program(directory / "bin", script)
    return Models(registry(adapter or agent()), directory=directory / "mux", environ=environ, now=lambda: AT)


def listed(*offered: ModelCapabilities) -> CachedListing:
    return CachedListing(agent="toy", at=AT, models=offered)


def test_included_models_are_listed(tmp_path: Path) -> None:
    known = models(tmp_path)
    assert known.list("toy") == MODELS
    assert known.list("toy-agent") == MODELS
    assert known.catalog() == {"toy": MODELS}
    assert known.last_updated("toy") == datetime(2026, 11, 1, tzinfo=UTC)
    assert not known.is_listed_by_agent("toy")
    assert not (tmp_path / "mux").exists()


def test_list_without_agent_has_each_name_once(tmp_path: Path) -> None:
    other = dataclasses.replace(agent(models=lambda: (SMALL, replace(OLD, model_id="older"))), agent="other")
    known = Models(registry(agent(), other), directory=tmp_path)
    assert [model.model_id for model in known.list()] == ["small-1.5", "older", "big-2", "big-1"]


def test_agents_without_models_are_not_in_the_catalog(tmp_path: Path) -> None:
    known = models(tmp_path, adapter=agent(models=tuple))
    assert (known.catalog(), known.list("toy"), known.last_updated("toy")) == ({}, (), None)


def test_refreshed_listing_is_cached_and_used(tmp_path: Path) -> None:
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


def test_failed_refresh_changes_nothing(tmp_path: Path) -> None:
    models(tmp_path).refresh("toy")
    before = models(tmp_path).list("toy")
    with pytest.raises(AgentMuxError) as raised:
        models(tmp_path, "exit 1").refresh("toy")
    assert raised.value.code == "AGENT_CRASH"
    assert models(tmp_path).list("toy") == before


def test_incomplete_listing_keeps_the_included_models(tmp_path: Path) -> None:
    more = agent(model_listing=ModelListing(argv=(), parse=parse_listing, is_complete=False))
    offered = models(tmp_path, adapter=more).refresh("toy")
    assert [model.model_id for model in offered] == ["big-2", "new", "small-1.5", "big-1"]


def test_damaged_listing_counts_as_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = models(tmp_path)
    known.refresh("toy")
    path = ListingCache(tmp_path / "mux").path("toy")
    path.write_text('{"agent": "toy", "models": [{"modelId": 1}]}')
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        assert known.list("toy") == MODELS
    assert f"{path} is damaged" in caplog.text
    known.refresh("toy")
    assert [model.model_id for model in known.list("toy")] == ["big-2", "new"]


def test_hostile_agent_name_stays_in_the_folder(tmp_path: Path) -> None:
    path = ListingCache(tmp_path).path("../../x")
    assert path.parent == tmp_path / "cache" / "models"


@pytest.mark.parametrize(
    ("name", "status"),
    [("new", "ok"), ("big", "alias"), ("small-1.5", "ok"), ("big-1", "deprecated"), ("none", "unknown")],
)
def test_validate_knows_listed_and_included_names(tmp_path: Path, name: str, status: str) -> None:
    known = models(tmp_path)
    known.refresh("toy")
    assert known.validate("toy", name).status == status


def test_get_returns_the_model_of_a_name(tmp_path: Path) -> None:
    known = models(tmp_path)
    assert known.get("toy-agent", "big") is BIG
    with pytest.raises(AgentMuxError, match="unknown toy model 'gib-2'; did you mean big-2") as raised:
        known.get("toy", "gib-2")
    assert raised.value.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("call", ["list", "default", "current", "refresh", "last_updated"])
def test_unknown_agents_are_rejected(tmp_path: Path, call: str) -> None:
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


def test_default_is_the_adapters(tmp_path: Path) -> None:
    chosen = models(tmp_path, adapter=agent(default_model="big-2"))
    assert (chosen.default("toy"), chosen.current("toy")) == ("big-2", CurrentModel(model="big-2", source="adapter"))
    left = models(tmp_path, adapter=agent(default_model=None))
    assert (left.default("toy"), left.current("toy")) == (None, CurrentModel(model=None, source="agent"))


def test_current_model_and_its_source(tmp_path: Path) -> None:
    """Precedence: profile, client, our files, the agent's own files, adapter."""
    adapter = agent(default_model="big-2")
    own = {"toy": ConfigSetting("small-1.5", "project", Path("/p/toy.json"))}

    def current(sources: dict[str, str], model: str | None = "x") -> CurrentModel:
        settled = ResolvedOptions(options=RunOptions(agent="toy", model=model), sources=sources)
        return current_model(adapter, settled, tmp_path, own.get)

    assert current({}, None) == CurrentModel(model="small-1.5", source="agent config", path="/p/toy.json")
    for path, source in (("config.json", "global config"), ("profiles/fast.json", "profile")):
        file = str(tmp_path / path)
        assert current({"model": file}) == CurrentModel(model="x", source=source, path=file)  # type: ignore[arg-type]
    assert current({"model": "/w/.agent-mux/config.json"}).source == "project config"
    assert current({"model": "the client"}) == CurrentModel(model="x", source="client")


def test_current_model_can_come_from_the_client(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()), default_model="small-1.5")
    assert mux.models.current("toy", project=tmp_path) == CurrentModel(model="small-1.5", source="client")
    (tmp_path / "config.json").write_text('{"agents": {"toy": {"model": "big"}}}')
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()))
    assert mux.models.current("toy", project=tmp_path) == CurrentModel(
        model="big", source="global config", path=str(tmp_path / "config.json")
    )


def test_client_has_the_registry(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, adapters=registry(agent()))
    assert mux.models.list("toy") == MODELS
    assert mux.models.can_refresh("toy")


def test_unlisted_properties_are_the_known_ones() -> None:
    bare = ModelCapabilities(model_id="big-2", provider="maker")
    assert merge_listing(listed(bare), MODELS) == (replace(BIG, as_of=AT.date()),)


def test_listed_properties_override_known_ones() -> None:
    own = ModelCapabilities(model_id="big-2", provider="other", display_name="Bigger", context_window=272_000,
                            price=Price(3.0, 9.0), thinking_efforts=("high",))  # fmt: skip
    (model,) = merge_listing(listed(own), MODELS)
    assert (model.provider, model.display_name, model.context_window) == ("other", "Bigger", 272_000)
    assert (model.price, model.thinking_efforts, model.max_output_tokens) == (Price(3.0, 9.0), ("high",), 64_000)


def test_rounded_sizes_and_prices_without_long_calls_do_not_replace_exact_ones() -> None:
    rounded = ModelCapabilities(model_id="big-2", provider="maker", context_window=1_000_000, price=Price(2.0, 10.0))
    (model,) = merge_listing(listed(rounded), MODELS)
    assert (model.context_window, model.price) == (BIG.context_window, BIG.price)


def test_dated_version_has_no_aliases() -> None:
    (model,) = merge_listing(listed(ModelCapabilities(model_id="maker/big-2-20260101", provider="maker")), MODELS)
    assert (model.alias, model.price) == ((), BIG.price)


def test_retirement_date_is_kept() -> None:
    (model,) = merge_listing(listed(ModelCapabilities(model_id="big-1", provider="maker")), MODELS)
    assert (model.deprecated, model.successor, model.retires_on) == (True, "big-2", date(2026, 12, 1))
    assert (OLD.as_of, SMALL.as_of, model.as_of) == (DAY, DAY, AT.date())
