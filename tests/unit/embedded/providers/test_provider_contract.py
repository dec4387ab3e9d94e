"""Requests and responses, independent of the provider."""

from typing import get_args

from agent_loop import errors
from agent_loop.errors import NetworkError, ProviderError, RateLimitedError
from agent_loop.messages import AssistantMessage, Text, Thinking, ToolCall
from agent_loop.providers import NO_CACHE, CacheSettings, ModelRequest, ModelResponse, ModelSettings, ToolDefinition
from agent_loop.providers.provider import THINKING_TOKENS


def test_thinking_levels_have_the_tokens_of_the_seed() -> None:
    of_the_seed = {"off": 0, "minimal": 128, "low": 512, "medium": 2_048, "high": 8_192}
    assert {**of_the_seed, "max": 24_576} == THINKING_TOKENS
    assert ModelSettings(thinking="low").thinking_tokens == 512
    assert ModelSettings(thinking="low", thinking_budget=9).thinking_tokens == 9
    assert ModelSettings().thinking_tokens is None


def test_cache_settings_are_on_off_or_by_place() -> None:
    assert (CacheSettings().enabled, NO_CACHE.enabled) == (True, False)
    assert CacheSettings(system=False, tools=False).enabled


def test_only_rate_limits_and_network_errors_are_retryable() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, ProviderError)]
    assert {each for each in kinds if each.retryable} == {RateLimitedError, NetworkError}
    assert RateLimitedError("slow", retry_after=2.5).retry_after == 2.5
    assert sorted(each.kind for each in kinds) == sorted(get_args(errors.ProviderErrorKind))


def test_a_request_has_system_messages_tools_choice_settings_and_schema() -> None:
    request = ModelRequest(messages=())
    assert (request.system, request.tools, request.tool_choice, request.output_schema) == ("", (), "auto", None)
    assert (request.purpose, request.settings) == ("turn", ModelSettings())
    definition = ToolDefinition("look", "Looks.", {"type": "object"})
    assert (definition.name, definition.description, definition.parameters) == ("look", "Looks.", {"type": "object"})


def test_a_response_has_text_thinking_tool_calls_and_a_stop_reason() -> None:
    call = ToolCall("1", "look")
    one = AssistantMessage(content=(Thinking("Hm."), Text("A")))
    two = AssistantMessage(content=(Text("B"), call), stop_reason="tool_use")
    response = ModelResponse((one, two))
    assert (response.text, response.thinking, response.tool_calls) == ("A\nB", "Hm.", (call,))
    assert (response.stop_reason, ModelResponse(()).stop_reason) == ("tool_use", "stop")
