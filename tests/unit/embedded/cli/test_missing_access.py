"""What the program reports when a model's key or address is missing: what a run can set."""

import pytest

from agent_loop.cli.errors import code_of, message_of
from agent_loop.errors import ConfigurationError
from agent_loop.providers.access import Access, complete_access


@pytest.mark.parametrize(
    ("vendor", "code", "message"),
    [
        (
            "anthropic",
            "AUTH_ERROR",
            "anthropic needs an API key; set ANTHROPIC_API_KEY in the environment, or in `env`",
        ),
        ("google", "AUTH_ERROR", "google needs an API key; set GOOGLE_API_KEY or GEMINI_API_KEY in the environment"),
        (
            "openai-compatible",
            "VALIDATION_ERROR",
            "needs an address; set OPENAI_COMPATIBLE_BASE_URL in the environment",
        ),
    ],
)
def test_missing_access_names_what_a_run_can_set(vendor: str, code: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match="or pass ") as raised:
        complete_access(vendor, Access(), {})
    assert code_of(raised.value) == code
    assert message in message_of(raised.value)
    assert "pass " not in message_of(raised.value)
