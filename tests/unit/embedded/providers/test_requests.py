"""Requests of each vendor's API: cache breakpoints, system messages, output schemas."""

import json
from typing import Any

import pytest

from agent_loop.agent import Agent
from agent_loop.behavior import Behavior
from agent_loop.errors import ContextExceededError, NetworkError, ProviderError, RateLimitedError
from agent_loop.messages import (
    AssistantMessage,
    ExtensionMessage,
    Image,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
    user,
)
from agent_loop.providers import NO_CACHE, CacheSettings, ModelRequest, ModelSettings
from agent_loop.results import RunResult
from agent_loop.tools.function import function_tool

from .wires import (
    ANTHROPIC,
    AZURE,
    BEDROCK,
    CHAT,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    VERTEX,
    WIRES,
    Wire,
    ask,
    call,
    request,
    run,
    served,
    text,
)

EPHEMERAL = {"type": "ephemeral", "ttl": "5m"}
POINT = {"cachePoint": {"type": "default"}}


def sent(wire: Wire, asked: ModelRequest) -> Any:
    with served(text("ok")) as server:
        ask(wire.provider(server.url), asked)
    return server.requests[0].body


def cached(cache: CacheSettings) -> ModelRequest:
    history = (user("One"), AssistantMessage(content=(Text("Two"),)), user("Three"))
    return request(*history, system="Be kind.", settings=ModelSettings(cache=cache))


def test_cache_breakpoints_are_at_system_tools_and_the_end_of_the_conversation() -> None:
    body = sent(ANTHROPIC, cached(CacheSettings()))
    assert body["system"][-1]["cache_control"] == EPHEMERAL
    assert body["tools"][-1]["cache_control"] == EPHEMERAL
    assert body["messages"][-1]["content"][-1]["cache_control"] == EPHEMERAL
    assert json.dumps(body).count("cache_control") == 3


@pytest.mark.parametrize("place", ["system", "tools", "messages"])
def test_each_cache_breakpoint_is_set_separately(place: str) -> None:
    only = CacheSettings(**{name: name == place for name in ("system", "tools", "messages")})
    body = sent(ANTHROPIC, cached(only))
    assert json.dumps(body).count("cache_control") == 1
    assert "cache_control" in json.dumps(body[place])
    body = sent(BEDROCK, cached(only))
    assert json.dumps(body).count("cachePoint") == 1
    assert "cachePoint" in json.dumps(body["toolConfig" if place == "tools" else place])


def test_cache_breakpoints_at_bedrock() -> None:
    body = sent(BEDROCK, cached(CacheSettings()))
    assert body["system"][-1] == POINT
    assert body["toolConfig"]["tools"][-1] == POINT
    assert body["messages"][-1]["content"][-1] == POINT


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_no_cache_sends_no_breakpoints(wire: Wire) -> None:
    body = json.dumps(sent(wire, cached(NO_CACHE)))
    assert "cache" not in body.lower()


@pytest.mark.parametrize("wire", [OPENAI, CHAT, COMPATIBLE, AZURE, GOOGLE, VERTEX], ids=lambda wire: wire.name)
def test_providers_that_cache_by_themselves_get_no_breakpoints(wire: Wire) -> None:
    assert "cache" not in json.dumps(sent(wire, cached(CacheSettings()))).lower()


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_system_messages_stay_in_their_places(wire: Wire) -> None:
    history = (
        SystemMessage(content="First rule."),
        user("One"),
        AssistantMessage(content=(Text("Two"),)),
        SystemMessage(content="Later rule."),
        user("Three"),
    )
    body = json.dumps(sent(wire, request(*history, system="Be kind.")))
    places = [body.index(words) for words in ("One", "Two", "Later rule.", "Three")]
    assert places == sorted(places)
    assert "First rule." in body
    assert "Be kind." in body


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_extension_messages_are_never_sent(wire: Wire) -> None:
    body = sent(wire, request(user("One"), ExtensionMessage(kind="note", data="private"), user("Two")))
    assert "private" not in json.dumps(body)
    assert "Two" in json.dumps(body)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_an_empty_tool_result_is_a_result(wire: Wire) -> None:
    with served(call({"text": "ping"}), text("Done")) as server:
        first = ask(wire.provider(server.url), request())
        nothing = ToolMessage(tool_call_id="call_1", name="echo", content=())
        assert ask(wire.provider(server.url), request(user("Hello"), *first.messages, nothing)).text == "Done"
    assert json.dumps(server.requests[1].body).count('"call_1"') == 2


def test_an_image_that_is_no_base64_becomes_a_note() -> None:
    body = sent(ANTHROPIC, request(UserMessage(content=(Text("See"), Image("%%%", "image/png")))))
    assert body["messages"][0]["content"][1]["text"] == "(an image that cannot be read)"


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI, CHAT, AZURE, GOOGLE, VERTEX, BEDROCK], ids=lambda wire: wire.name)
def test_output_schema_is_native_where_the_provider_has_it(wire: Wire) -> None:
    with served(text("{}", is_aux=True), text("{}")) as server:
        provider = wire.provider(server.url)
        assert provider.capabilities.structured_output
        ask(provider, ModelRequest(messages=(user("Where?"),), output_schema=SCHEMA))
    body = json.dumps(server.requests[0].body)
    assert "city" in body
    assert '"tools"' not in body


def test_gemini_without_a_schema_beside_tools_answers_through_the_output_tool() -> None:
    def look() -> str:
        """Look."""
        return "Paris"

    output = {"blocks": [{"type": "tool_use", "name": "__output__", "id": "call_2", "input": {"city": "Paris"}}]}
    with served(text("It is Paris."), output) as server:
        provider: Any = GOOGLE.provider(server.url)
        assert not provider.capabilities.structured_output_with_tools
        one = Agent(provider, tools=[function_tool(look)], behavior=Behavior(output_schema=SCHEMA))

        async def answer() -> RunResult:
            try:
                return await one.run("Where?")
            finally:
                await provider.aclose()

        result = run(answer)
    assert (result.status, result.output) == ("completed", {"city": "Paris"})
    first, second = (json.dumps(each.body) for each in server.requests)
    assert "responseMimeType" not in first + second
    assert "__output__" in second


@pytest.mark.filterwarnings("ignore:Sampling parameters")  # pydantic-ai warns about omitted settings
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_sampling_settings_and_max_tokens_are_sent(wire: Wire) -> None:
    body = json.dumps(sent(wire, request(settings=ModelSettings(max_tokens=321, top_p=0.25))))
    assert "321" in body
    assert "0.25" in body or wire in {OPENAI, CHAT, AZURE}  # reasoning models of OpenAI take no sampling


def test_openai_compatible_servers_get_the_older_name_of_max_tokens() -> None:
    assert sent(COMPATIBLE, request(settings=ModelSettings(max_tokens=321)))["max_tokens"] == 321
    assert sent(CHAT, request(settings=ModelSettings(max_tokens=321)))["max_completion_tokens"] == 321


# -- answers that are none ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "reason"),
    [(ANTHROPIC, "max_tokens"), (CHAT, "length"), (GOOGLE, "MAX_TOKENS"), (BEDROCK, "max_tokens")],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_stop_reason_length(wire: Wire, reason: str) -> None:
    with served(text("Hello", stop_reason=reason)) as server:
        answer = ask(wire.provider(server.url), request())
    assert answer.stop_reason == "length"


def test_stop_reason_length_of_responses() -> None:
    with served(text("Hello", incomplete={"reason": "max_output_tokens"})) as server:
        assert ask(OPENAI.provider(server.url), request()).stop_reason == "length"


def test_tool_call_sets_the_stop_reason_where_the_provider_does_not() -> None:
    with served(call({"text": "x"}, stop_reason="STOP")) as server:
        assert ask(GOOGLE.provider(server.url), request()).stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("wire", "step", "kind"),
    [
        (ANTHROPIC, {"sse_error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}},
         NetworkError),
        (ANTHROPIC, {"sse_error": {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}},
         RateLimitedError),
        (ANTHROPIC, {"sse_error": {"type": "error", "error": {"type": "invalid_request_error",
                                                              "message": "prompt is too long: 9 tokens > 8 maximum"}}},
         ContextExceededError),
        (OPENAI, {"failed": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimitedError),
        (OPENAI, {"failed": {"code": "server_error", "message": "broken"}}, NetworkError),
        (OPENAI, {"failed": {"code": "context_length_exceeded",
                             "message": "Your input exceeds the context window of this model."}}, ContextExceededError),
        (BEDROCK, {"sse_error": {"throttlingException": {"message": "slow"}}}, RateLimitedError),
        (BEDROCK, {"sse_error": {"internalServerException": {"message": "broken"}}}, NetworkError),
        (BEDROCK, {"sse_error": {"validationException": {"message": "no"}}}, ProviderError),
    ],
)  # fmt: skip
def test_errors_in_the_middle_of_a_stream_have_their_kind(
    wire: Wire, step: dict[str, Any], kind: type[ProviderError]
) -> None:
    with served(text("Hello", **step)) as server, pytest.raises(ProviderError) as caught:
        ask(wire.provider(server.url), request())
    assert type(caught.value) is kind
