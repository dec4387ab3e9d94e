"""`openclaw models list --all --refresh --json` of 2026.9.6: offline, with keys of three providers, and without any."""

from tests.unit.adapters.listings import assert_refused, assert_truncated_listing_is_safe, listed, parsed


def test_models_are_named_with_their_provider() -> None:
    models = listed("openclaw", "2026.9.6.json")
    assert len(models) == 39
    opus = models["anthropic/claude-opus-5-5"]
    assert (opus.provider, opus.context_window, opus.image_input) == ("anthropic", 1_000_000, True)
    assert (opus.price, opus.max_output_tokens) == (None, None)


def test_what_there_is_no_key_for_is_not_offered() -> None:
    assert listed("openclaw", "2026.9.6-without-keys.json") == {}


def test_noise() -> None:
    assert list(parsed("openclaw", 'note\n{"models":[{"key":"a/b","input":7},{"name":"c"}]}')) == ["a/b"]
    assert_refused("openclaw", "no", "not a JSON object")
    assert_truncated_listing_is_safe("openclaw", "2026.9.6.json")
