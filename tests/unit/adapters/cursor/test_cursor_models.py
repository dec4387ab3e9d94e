"""`cursor-agent models`, as others describe it: it cannot be run without an account."""

from tests.unit.adapters.listings import assert_refused, parsed

SAID = """Available models

auto - Auto  (default)
composer-2 - Composer 2 (current)
gpt-5.5-high - GPT-5.5 1M High
claude-opus-5-thinking-max - Claude Opus 5 (NO ZDR)
auto - Auto once more

Tip: use --model <id> to switch.
"""


def test_listed_model_has_id_and_display_name() -> None:
    models = parsed("cursor", SAID)
    assert [(name, model.display_name) for name, model in models.items()] == [
        ("auto", "Auto"),
        ("composer-2", "Composer 2"),
        ("gpt-5.5-high", "GPT-5.5 1M High"),
        ("claude-opus-5-thinking-max", "Claude Opus 5 (NO ZDR)"),
    ]


def test_noise() -> None:
    assert parsed("cursor", "\n") == {}
    assert_refused("cursor", "No models available for this account.", "no line lists a model")
