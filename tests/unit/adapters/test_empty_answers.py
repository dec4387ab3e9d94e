"""A model that answered with nothing is reported as such, in whatever words the CLI has for it."""

from agent_mux_adapters.copilot.outcome import error_code_of
from agent_mux_adapters.gemini.outcome import failure_of

GEMINI = "The model returned an empty response with no text or thoughts. Please try again."
COPILOT = "No response was returned. Send your message again to retry."


def test_empty_answer_has_its_own_code() -> None:
    assert failure_of(GEMINI).code == "EMPTY_ANSWER"
    assert failure_of(f"[API Error: {GEMINI}]").code == "EMPTY_ANSWER"
    assert error_code_of(COPILOT) == "EMPTY_ANSWER"
