"""`pi --list-models` of 0.87.1 (standard output) and 0.73.1 (standard error): offline, with keys of three providers."""

import pytest
from tests.unit.adapters.listings import assert_refused, assert_truncated_listing_is_safe, listed, parsed


@pytest.mark.parametrize(("name", "count"), [("0.87.1.txt", 78), ("0.73.1.txt", 92)])
def test_both_versions_print_the_same_table(name: str, count: int) -> None:
    models = listed("pi", name)
    assert len(models) == count
    assert {model.provider for model in models.values()} == {"anthropic", "google", "openai"}


def test_a_row_of_the_table() -> None:
    models = listed("pi", "0.87.1.txt")
    haiku, mini = models["anthropic/claude-haiku-4-5"], models["openai/o3-mini"]
    assert (haiku.context_window, haiku.max_output_tokens) == (200_000, 64_000)
    assert (haiku.thinking, haiku.image_input) == (True, True)
    assert (mini.thinking, mini.image_input, mini.price) == (True, False, None)
    assert models["google/gemini-2.5-pro"].max_output_tokens == 65_500


def test_without_keys_there_are_no_models() -> None:
    assert listed("pi", "0.87.1-without-keys.txt") == {}


def test_invalid_output() -> None:
    table = "provider model context max-out thinking images\na b x 1K no no\n"
    assert list(parsed("pi", f"warning\n{table}\nthe end\n")) == ["a/b"]
    long = parsed("pi", table.replace("1K", "9" * 400 + "M"))["a/b"]
    assert (long.context_window, long.max_output_tokens) == (None, None)
    assert_refused("pi", "", "no table of models")
    assert_refused("pi", "Error: it went wrong", "no table of models")
    assert_truncated_listing_is_safe("pi", "0.87.1.txt")
