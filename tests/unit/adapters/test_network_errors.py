"""A failed connection to the provider has its own error code. The messages were printed by the real CLIs."""

from collections.abc import Callable

import pytest

from agent_loop.cli.outcomes import outcome_of
from agent_loop.events import LoopEnd
from agent_mux.sdk import ErrorCode, facts
from agent_mux_adapters._dialects.acp.outcome import code_of as acp_code
from agent_mux_adapters._dialects.pi.outcome import code_of as pi_code
from agent_mux_adapters.claude.outcome import closing_fact
from agent_mux_adapters.codex.outcome import error_code_of as codex_code
from agent_mux_adapters.copilot.outcome import error_code_of as copilot_code
from agent_mux_adapters.cursor.outcome import code_of as cursor_code
from agent_mux_adapters.gemini.outcome import failure_of as gemini_failure
from agent_mux_adapters.hermes.outcome import code_of as hermes_code
from agent_mux_adapters.openclaw.outcome import failure_of as openclaw_failure
from agent_mux_adapters.opencode.outcome import code_of as opencode_code


def claude_code(message: str) -> ErrorCode:
    line = {"subtype": "success", "is_error": True, "result": message}
    closing = closing_fact(line, None, None, interrupted=False, max_turns=0)
    assert isinstance(closing, facts.TurnFailed)
    return closing.failure.code


CODE_OF: dict[str, Callable[[str], ErrorCode]] = {
    "acp": acp_code,
    "claude": claude_code,
    "codex": codex_code,
    "copilot": copilot_code,
    "cursor": cursor_code,
    "gemini": lambda message: gemini_failure(message).code,
    "hermes": hermes_code,
    "openclaw": lambda message: openclaw_failure(message).code,
    "opencode": opencode_code,
    "pi": pi_code,
}


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("acp", "Internal error: Connection error."),
        ("acp", "Internal error: terminated"),
        ("cursor", "RetriableError: [unavailable] the service is not available"),
        ("claude", "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"),
        ("claude", "API Error: Can't reach the API server — check your internet or DNS (EAI_AGAIN)"),
        ("codex", "Connection failed: error sending request"),
        (
            "codex",
            "stream disconnected before completion: Transport error: network error: error decoding response body",
        ),
        (
            "copilot",
            "Could not connect to local model provider at http://127.0.0.1:1/v1.\n  Check that the service runs.",
        ),
        (
            "copilot",
            "Failed native model HTTP request: error sending request for url (http://x/v1): client error (Connect)",
        ),
        ("copilot", "Failed native model HTTP request: error decoding response body: error reading a body"),
        ("gemini", "exception TypeError: fetch failed sending request"),
        ("gemini", "[API Error: exception TypeError: fetch failed sending request]"),
        ("gemini", "terminated"),
        ("hermes", "API call failed after 3 retries: Connection error."),
        ("pi", "Connection error."),
        ("pi", "terminated"),
        ("pi", "ECONNREFUSED: Unable to connect. Is the computer able to access the url?"),
        ("pi", "ECONNRESET: The socket connection was closed unexpectedly. For more information, pass `verbose: true`"),
        ("pi", "getaddrinfo EAI_AGAIN nosuch.invalid"),
        *((agent, "connect ECONNREFUSED 127.0.0.1:1") for agent in CODE_OF),
    ],
)
def test_failed_connection_is_a_network_error(agent: str, message: str) -> None:
    assert CODE_OF[agent](message) == "NETWORK_ERROR"


@pytest.mark.parametrize("agent", CODE_OF)
@pytest.mark.parametrize(
    "message", ["502 Bad Gateway: upstream connection refused", "the tool was terminated by a timer", "HTTP 500: oops"]
)
def test_answer_of_the_provider_is_no_network_error(agent: str, message: str) -> None:
    assert CODE_OF[agent](message) == "AGENT_CRASH"


def test_failed_connection_of_the_embedded_agent_is_a_network_error() -> None:
    end = LoopEnd(loop_id="l", status="failed", error="refused", error_kind="network")
    outcome = outcome_of(end, None, structured=None, context=(0, 0), stop_reason=None)
    assert isinstance(outcome, facts.TurnFailed)
    assert outcome.failure.code == "NETWORK_ERROR"
