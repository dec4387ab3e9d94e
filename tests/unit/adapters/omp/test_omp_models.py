"""`omp models --json` of 18.2.3: offline, with keys of three providers."""

from tests.unit.adapters.listings import assert_refused, assert_truncated_listing_is_safe, listed, parsed

from agent_mux.sdk.models import Price


def test_models_have_sizes_and_prices() -> None:
    models = listed("omp", "18.2.3.json")
    assert len(models) == 124
    fable = models["anthropic/claude-fable-5-1"]
    assert (fable.provider, fable.display_name, fable.context_window) == ("anthropic", "Claude Fable 5.1", 1_000_000)
    assert (fable.price, fable.max_output_tokens) == (Price(10.0, 50.0, 0.25, 12.5), 128_000)
    assert (fable.thinking_efforts, fable.image_input) == (("low", "medium", "high", "xhigh", "max"), True)
    astra = models["openai/gpt-6-astra"].price
    assert astra == Price(10.0, 50.0, 1.0, 12.5, threshold=272_000, beyond=Price(20.0, 75.0, 2.0, 25.0))


def test_without_keys_there_are_no_models() -> None:
    assert parsed("omp", '{"models":[]}\n') == {}


def test_invalid_output() -> None:
    assert list(parsed("omp", 'warning\n{"models":[{"selector":"a/b"},{"id":"c"},7]}')) == ["a/b"]
    assert_refused("omp", "", "not a JSON object")
    assert_refused("omp", '{"models": {}}', "no list 'models'")
    assert_refused("omp", '{"models": [', "Expecting")
    assert_refused("omp", '{"models":' + "[" * 100_000, "nested too deeply")
    assert_truncated_listing_is_safe("omp", "18.2.3.json")
