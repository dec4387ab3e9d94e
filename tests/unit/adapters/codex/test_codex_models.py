"""`codex debug models` of 0.169.0: offline, without an account; prompts removed."""

from tests.unit.adapters.listings import assert_refused, assert_truncated_listing_is_safe, listed, parsed


def test_hidden_models_are_left_out() -> None:
    models = listed("codex", "0.169.0.json")
    assert list(models) == [
        "gpt-6-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6-sol", "gpt-5.6-terra",
        "gpt-5.6-luna", "gpt-5.5",
    ]  # fmt: skip


def test_the_window_is_the_one_that_codex_uses() -> None:
    sol = listed("codex", "0.169.0.json")["gpt-6-sol"]
    assert (sol.provider, sol.display_name, sol.context_window) == ("openai", "GPT-6-Sol", 272_000)
    assert (sol.thinking, sol.image_input) == (True, True)
    assert sol.thinking_efforts[:3] == ("low", "medium", "high")


def test_noise() -> None:
    entries = '{"slug":"a","visibility":"list","supported_reasoning_levels":7},{"slug":"b"},{"visibility":"list"}'
    assert list(parsed("codex", f'{{"models":[{entries}]}}')) == ["a"]
    assert_refused("codex", "error", "not a JSON object")
    assert_truncated_listing_is_safe("codex", "0.169.0.json")
