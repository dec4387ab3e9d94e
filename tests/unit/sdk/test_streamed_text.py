"""A streamed text and its complete form are compared although their secrets are redacted differently."""

import pytest

from agent_mux.sdk.streamed_text import missing_text

KEY = "abcdefghijkl"
HIDDEN = "*1**********"


@pytest.mark.parametrize(
    ("complete", "streamed", "missing"),
    [
        ("hello world", "hello", " world"),
        ("hello", "hello", ""),
        ("hello", "help", None),
        ("hel", "hello", None),
        (f"key {HIDDEN} end", f"key {KEY}", " end"),
        (f"key {HIDDEN} end", f"key {KEY[:5]}", "*******" + " end"),
        (f"key {KEY} end", f"key {HIDDEN} e", "nd"),
        (f"key {HIDDEN} end", f"kez {KEY} end", None),
        (f"key {HIDDEN} end", f"key {KEY} and", None),
        (f"{HIDDEN} and {HIDDEN}", f"{KEY} and {KEY}", ""),
    ],
)
def test_end_that_was_not_streamed(complete: str, streamed: str, missing: str | None) -> None:
    assert missing_text(complete, streamed) == missing
