"""Classification of exceptions."""

import pytest
from pydantic_ai import exceptions as native

from agent_loop.errors import (
    AuthenticationError,
    ContextExceededError,
    NetworkError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
)
from agent_loop.providers.pydantic_ai.failures import MAX_DETAIL_CHARACTERS, provider_error


def http(status: int, message: str, **more: object) -> native.ModelHTTPError:
    return native.ModelHTTPError(status, "m", {"error": {"message": message}}, **more)  # type: ignore[arg-type]


QUOTA_USED_UP = native.ModelHTTPError.for_category(native.ModelQuotaExceededError, status_code=429, model_name="m")
OVERFLOWS = (
    "prompt is too long: 213462 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "This model's maximum context length is 128000 tokens.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "prompt token count of 300000 exceeds the limit of 128000 tokens",
    "the request exceeds the available context size, try increasing it",
    "tokens to keep from the initial prompt is greater than the context length",
    "invalid params, context window exceeds limit (2013)",
    "Your request exceeded model token limit: 262144",
    "context_length_exceeded",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "request_too_large: Request exceeds the maximum size",
    "too many tokens in the prompt",
)


@pytest.mark.parametrize("phrase", OVERFLOWS)
@pytest.mark.parametrize("status", [400, 413])
def test_overflow_phrases_of_the_providers_are_known(phrase: str, status: int) -> None:
    assert type(provider_error(http(status, phrase), "acme")) is ContextExceededError


@pytest.mark.parametrize("phrase", ["tool name is too long", "max_tokens: 9 > 8, which is the maximum", "no credit"])
def test_other_refusals_are_no_overflow(phrase: str) -> None:
    assert type(provider_error(http(400, phrase), "acme")) is ProviderError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (http(401, "no"), AuthenticationError),
        (http(403, "no"), AuthenticationError),
        (http(404, "no"), ProviderError),
        (http(408, "no"), NetworkError),
        (http(429, "prompt is too long"), RateLimitedError),
        (http(500, "no"), NetworkError),
        (http(529, "no"), NetworkError),
        (QUOTA_USED_UP, QuotaExceededError),
        (
            native.ModelHTTPError(
                429, "m", {"message": "You exceeded your current quota", "code": "insufficient_quota"}
            ),
            QuotaExceededError,
        ),
        (
            native.ModelHTTPError(429, "m", {"error": {"message": "no", "type": "insufficient_quota"}}),
            QuotaExceededError,
        ),
        (http(400, "Your credit balance is too low to access the Anthropic API"), QuotaExceededError),
        (http(402, "Insufficient Balance"), QuotaExceededError),
        (http(429, "You exceeded your current quota, please retry in 8s"), RateLimitedError),
        (native.ModelConnectionError("m", "no"), NetworkError),
        (ConnectionResetError("no"), NetworkError),
        (TimeoutError("no"), NetworkError),
        (native.UserError("no"), ProviderError),
        (KeyError("no"), ProviderError),
    ],
)
def test_each_kind_of_failure_has_its_error(error: Exception, kind: type[ProviderError]) -> None:
    assert type(provider_error(error, "acme")) is kind


def test_secrets_are_taken_out_of_sentences_the_longest_first() -> None:
    error_message = str(provider_error(http(400, "sk-1 and sk-1234 are bad"), "acme", ["sk-1", "sk-1234", ""]))
    assert error_message == "acme could not answer: (redacted) and (redacted) are bad"


def test_pages_of_text_are_cut() -> None:
    error = native.ModelHTTPError(502, "m", "<html>" + "x" * 100_000)
    assert len(str(provider_error(error, "acme"))) < MAX_DETAIL_CHARACTERS + 200
