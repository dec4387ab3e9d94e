"""`opencode models --verbose` of 1.18.33, offline, with a key of Anthropic; without `--verbose`, without a key."""

from tests.unit.adapters.listings import assert_refused, assert_truncated_listing_is_safe, listed, parsed

from agent_mux.sdk.models import Price


def test_model_names_contain_the_provider() -> None:
    models = listed("opencode", "1.18.33.txt")
    assert len(models) == 26
    assert {name.partition("/")[0] for name in models} == {"opencode", "anthropic"}
    opus = models["anthropic/claude-opus-5-5"]
    assert (opus.provider, opus.display_name) == ("anthropic", "Claude Opus 5.5")
    assert (opus.context_window, opus.max_output_tokens) == (1_000_000, 128_000)
    assert opus.price == Price(4.0, 20.0, 0.2, 5.0)
    assert (opus.thinking, opus.image_input, opus.pdf_input, opus.deprecated) == (True, True, True, False)
    assert opus.thinking_efforts == ("low", "medium", "high", "xhigh", "max")


def test_price_of_zero_is_unknown() -> None:
    assert listed("opencode", "1.18.33.txt")["opencode/big-pickle"].price is None


def test_list_of_names_is_parsed() -> None:
    models = listed("opencode", "1.18.33-names.txt")
    assert len(models) == 8
    assert models["opencode/big-pickle"].context_window is None


def test_long_calls_and_deprecated_models() -> None:
    printed = """maker/m-1
{"id": "m-1", "status": "deprecated", "cost": {"input": 1, "output": 2, "tiers": [{"input": 3, "output": 4,
 "cache": {"read": 0.5}, "tier": {"type": "context", "size": 200000}}]}, "capabilities": {"toolcall": true}}
maker/m-2
{"capabilities": {"toolcall": false}}
"""
    models = parsed("opencode", printed)
    assert list(models) == ["maker/m-1"]
    assert models["maker/m-1"].deprecated
    assert models["maker/m-1"].price == Price(1.0, 2.0, threshold=200_000, beyond=Price(3.0, 4.0, 0.5))


def test_invalid_output() -> None:
    assert parsed("opencode", "") == {}
    assert list(parsed("opencode", "maker/m-1\n{broken\nmaker/m-2\n[]\n")) == ["maker/m-1", "maker/m-2"]
    assert_refused("opencode", "Error: it went wrong\n", "the output contains no model name")
    assert_truncated_listing_is_safe("opencode", "1.18.33.txt")
