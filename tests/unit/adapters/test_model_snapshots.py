"""The shipped model snapshots are valid and dated, and use the agents' model names."""

import tomllib
from datetime import date
from pathlib import Path

import pytest

from agent_mux.models.matching import find_model
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, find_price, prices_of
from agent_mux.sdk.registry import AdapterRegistry

BUILT_IN = Path(__file__).parents[3] / "adapters" / "agent_mux_adapters"
FILES = sorted(BUILT_IN.glob("*/*.toml"))
SNAPSHOTS = [path for path in FILES if path.name == "models.toml" or path.parent.name == "_models"]
OWN = ["claude", "codex", "copilot", "cursor", "gemini", "hermes", "omp", "openclaw", "opencode", "pi"]
PREFIXED = ["omp", "openclaw", "opencode", "pi"]
FIRST_MODEL_ANYWHERE = date(2023, 1, 1)


def adapter(agent: str) -> Adapter:
    return AdapterRegistry().get(agent)


def all_models() -> list[tuple[str, ModelCapabilities]]:
    return [(agent, model) for agent in OWN for model in adapter(agent).models()]


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_has_a_date_and_a_source(path: Path) -> None:
    snapshot = tomllib.loads(path.read_text("utf-8"))["snapshot"]
    assert type(snapshot["as_of"]) is date
    assert len(snapshot["source"]) > 20


def test_every_agent_has_a_snapshot() -> None:
    assert {path.parent.name for path in SNAPSHOTS} == {*OWN, "_models"}


@pytest.mark.parametrize("agent", OWN)
def test_names_are_unique(agent: str) -> None:
    models = adapter(agent).models()
    names = [name for model in models for name in (model.model_id, *model.alias)]
    assert len(names) == len(set(names))
    assert all(find_model(models, name) is model for model in models for name in (model.model_id, *model.alias))


@pytest.mark.parametrize("agent", OWN)
def test_models_are_valid(agent: str) -> None:
    for model in adapter(agent).models():
        assert model.as_of is not None
        assert model.display_name
        assert model.provider
        window, most, budget = model.context_window, model.max_output_tokens, model.max_thinking_tokens
        assert (window is None) == (most is None)
        assert window is None or most is None or 0 < most <= window
        assert budget is None or (model.thinking and budget > 0)
        assert model.thinking or not model.thinking_efforts
        assert len(set(model.thinking_efforts)) == len(model.thinking_efforts)


@pytest.mark.parametrize("agent", OWN)
def test_prices_are_valid(agent: str) -> None:
    for model in adapter(agent).models():
        price = model.price
        if price is None:
            continue
        assert 0 <= price.input <= price.output
        assert price.cached_input is None or 0 < price.cached_input < price.input
        assert price.cache_creation is None or price.input < price.cache_creation < price.output
        assert (price.threshold is None) == (price.beyond is None)
        if price.beyond is not None and price.threshold is not None:
            assert price.input < price.beyond.input
            assert price.output < price.beyond.output
            assert (price.beyond.cached_input is None) == (price.cached_input is None)
            assert model.context_window is None or price.threshold < model.context_window


@pytest.mark.parametrize("agent", OWN)
def test_lifecycle_dates_are_valid(agent: str) -> None:
    models = adapter(agent).models()
    for model in models:
        since, until = model.deprecated_since, model.retires_on
        assert model.deprecated or (since, until, model.successor) == (None, None, None)
        assert since is None or until is None or FIRST_MODEL_ANYWHERE < since < until
        if model.successor is not None:
            instead = next((other for other in models if other.model_id == model.successor), None)
            assert instead is None or instead.successor != model.model_id


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_successors_are_offered_by_the_same_agent(agent: str) -> None:
    models = adapter(agent).models()
    names = {model.model_id for model in models if not model.deprecated}
    assert {model.successor for model in models if model.successor} <= names


@pytest.mark.parametrize("agent", OWN)
def test_names_are_accepted_by_the_agent(agent: str) -> None:
    for model in adapter(agent).models():
        assert model.model_id.startswith(f"{model.provider}/") == (agent in PREFIXED)
        assert model.model_id.count("/") == (agent in PREFIXED)


@pytest.mark.parametrize(
    ("agent", "name", "model_id"),
    [
        ("claude", "opus", "claude-opus-5-5"), ("claude", "sonnet[1m]", "claude-sonnet-5-5"),
        ("claude", "claude-haiku-4-5-20251001", "claude-haiku-4-5"), ("claude", "opusplan", "opusplan"),
        ("codex", "gpt-5.4-2026-03-05", "gpt-5.4"), ("gemini", "auto", "auto"),
        ("copilot", "claude-opus-5.5", "claude-opus-5.5"), ("opencode", "openai/gpt-6-sol", "openai/gpt-6-sol"),
        ("pi", "anthropic/claude-opus-5:high", "anthropic/claude-opus-5"),
        ("hermes", "anthropic/claude-opus-4.8", "claude-opus-4-8"),
    ],
)  # fmt: skip
def test_common_names_resolve_to_models(agent: str, name: str, model_id: str) -> None:
    model = find_model(adapter(agent).models(), name)
    assert model is not None
    assert model.model_id == model_id


def test_prices_of_first_party_models_match_across_agents() -> None:
    prices = prices_of([model for agent in ("claude", "codex", "gemini") for model in adapter(agent).models()])
    for agent in (*PREFIXED, "hermes"):
        for model in adapter(agent).models():
            if model.provider in {"anthropic", "openai", "google"}:
                assert model.price == find_price(prices, model.model_id)


def test_copilot_models_have_smaller_context_windows() -> None:
    own, makers = (find_model(adapter(agent).models(), "claude-opus-4-8") for agent in ("copilot", "claude"))
    copilot = find_model(adapter("copilot").models(), "claude-opus-4.8")
    assert own is None
    assert copilot is not None
    assert makers is not None
    assert (copilot.context_window, makers.context_window) == (200_000, 1_000_000)
    assert copilot.price == makers.price


def test_free_models_cost_nothing() -> None:
    free = [model for model in adapter("opencode").models() if model.provider == "opencode"]
    assert len(free) == 8
    assert all(model.price is not None and model.price.input == model.price.output == 0 for model in free)


def test_only_model_aliases_lack_a_price() -> None:
    without = {(agent, model.model_id) for agent, model in all_models() if model.price is None}
    assert without == {
        ("claude", "opusplan"), ("copilot", "auto"), ("cursor", "auto"),
        ("gemini", "auto"), ("gemini", "pro"), ("gemini", "flash"), ("gemini", "flash-lite"),
    }  # fmt: skip
