"""Common behaviour of all providers, tested with each vendor's API."""

import json
from typing import Any

import anyio
import pytest

from agent_loop.errors import (
    AuthenticationError,
    ContextExceededError,
    NetworkError,
    ProviderError,
    RateLimitedError,
)
from agent_loop.messages import RAW_ARGUMENTS, Image, Text, ToolMessage, UserMessage, user
from agent_loop.providers import Chunk, ModelSettings, TextChunk, ToolCallChunk

from .wires import (
    ANTHROPIC,
    AZURE,
    BACKENDS,
    BEDROCK,
    CHAT,
    COMPATIBLE,
    GOOGLE,
    KEY,
    OPENAI,
    VERTEX,
    WIRES,
    ChunkRecorder,
    Wire,
    ask,
    call,
    request,
    run,
    served,
    text,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# On trio, the clients leave generators to the garbage collector when a stream ends early; asyncio closes them.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name.partition(":")[0])
every_loop = pytest.mark.parametrize("backend", BACKENDS)


def error(status: int, body: Any, **headers: str) -> dict[str, Any]:
    return text("never", error={"status": status, "body": body, "headers": headers})


@every_wire
@every_loop
def test_text_is_streamed(wire: Wire, backend: str) -> None:
    heard = ChunkRecorder()
    with served(text("Hello, world")) as server:
        answer = ask(wire.provider(server.url), request(system="Be kind."), heard, backend)
    assert "".join(chunk.text for chunk in heard.of(TextChunk)) == "Hello, world"
    assert len(heard.chunks) == 3
    assert (answer.text, answer.stop_reason) == ("Hello, world", "stop")
    assert [one.path for one in server.requests] == [wire.route]
    assert "Be kind." in json.dumps(server.requests[0].body)
    assert answer.messages[0].provider == wire.name.partition(":")[0]


@every_wire
def test_tool_call_and_its_result_go_round(wire: Wire) -> None:
    heard = ChunkRecorder()
    with served(call({"text": "ping"}), text("Done")) as server:
        provider = wire.provider(server.url)
        first = ask(provider, request(), heard)
        result = ToolMessage(tool_call_id=first.tool_calls[0].id, name="echo", content=(Text("pong result"),))
        second = ask(provider, request(user("Hello"), *first.messages, result))
    (wanted,) = first.tool_calls
    assert (wanted.id, wanted.name, wanted.arguments) == ("call_1", "echo", {"text": "ping"})
    assert json.loads(wanted.raw_arguments) == {"text": "ping"}
    assert first.stop_reason == "tool_use"
    fragments = heard.of(ToolCallChunk)
    assert {(one.id, one.name) for one in fragments} == {("call_1", "echo")}
    assert json.loads("".join(one.delta for one in fragments)) == {"text": "ping"}
    assert second.text == "Done"
    sent = json.dumps(server.requests[1].body)
    assert sent.count('"call_1"') == 2
    assert "pong result" in sent


@every_wire
def test_ids_that_the_loop_gave_are_sent_back(wire: Wire) -> None:
    with served(call({"text": "ping"}), text("Done")) as server:
        provider = wire.provider(server.url)
        (answer,) = ask(provider, request()).messages
        renamed = _renamed(answer, "made-by-us")
        result = ToolMessage(tool_call_id="made-by-us", name="echo", content=(Text("pong"),))
        ask(provider, request(user("Hello"), renamed, result))
    sent = json.dumps(server.requests[1].body)
    assert sent.count('"made-by-us"') == 2
    assert "call_1" not in sent


def _renamed(answer: Any, call_id: str) -> Any:
    import msgspec

    content = tuple(msgspec.structs.replace(block, id=call_id) for block in answer.content)
    return msgspec.structs.replace(answer, content=content)


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI, CHAT, COMPATIBLE, AZURE, BEDROCK], ids=lambda wire: wire.name)
@pytest.mark.parametrize("written", ['{"text": "pi', "[1, 2]"])
def test_arguments_that_are_no_json_object_are_kept_raw(wire: Wire, written: str) -> None:
    with served(call(written), text("Done")) as server:
        provider = wire.provider(server.url)
        first = ask(provider, request())
        result = ToolMessage(tool_call_id="call_1", name="echo", content=(Text("no"),), is_error=True)
        second = ask(provider, request(user("Hello"), *first.messages, result))
    assert first.tool_calls[0].arguments == {RAW_ARGUMENTS: written}
    assert first.tool_calls[0].raw_arguments == written
    assert first.tool_calls[0].is_unparsable
    assert second.text == "Done"


@every_wire
def test_images_are_sent_in_user_messages_and_tool_results(wire: Wire) -> None:
    picture = Image(PIXEL, "image/png")
    with served(call({"text": "ping"}), text("A pixel")) as server:
        provider = wire.provider(server.url)
        first = ask(provider, request())
        result = ToolMessage(tool_call_id="call_1", name="echo", content=(Text("seen"), picture))
        asked = UserMessage(content=(Text("What is it?"), picture))
        ask(provider, request(asked, *first.messages, result))
    sent = json.dumps(server.requests[1].body).replace("-", "+").replace("_", "/")  # Google's alphabet
    assert sent.count(PIXEL) == 2


@every_wire
def test_usage_is_reported_in_disjoint_parts(wire: Wire) -> None:
    with served(text("Hello")) as server:
        usage = ask(wire.provider(server.url), request()).usage
    assert usage.cache_read_tokens == 30
    assert usage.cache_write_tokens == (20 if wire in {ANTHROPIC, BEDROCK} else 0)
    assert usage.prompt_tokens == 150 if wire not in {OPENAI, AZURE} else usage.prompt_tokens == 100
    assert usage.thinking_tokens == (None if wire in {ANTHROPIC, BEDROCK} else 5)
    assert (usage.cost_usd is None) == (wire == COMPATIBLE)
    assert usage.cost_usd is None or 0 < usage.cost_usd < 0.01


@every_wire
def test_wrong_key_is_an_authentication_error_without_the_key(wire: Wire) -> None:
    with served(error(401, {"error": {"message": f"bad key {KEY}"}, "message": f"bad key {KEY}"})) as server:
        with pytest.raises(AuthenticationError) as caught:
            ask(wire.provider(server.url), request())
        assert len(server.requests) == 1
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)
    assert "bad key" in str(caught.value)
    assert (caught.value.status, caught.value.retryable) == (401, False)


@every_wire
def test_rate_limit_reports_the_delay_and_the_client_does_not_retry(wire: Wire) -> None:
    with served(error(429, {"error": {"message": "slow down"}}, **{"retry-after": "7"})) as server:
        with pytest.raises(RateLimitedError) as caught:
            ask(wire.provider(server.url), request())
        assert len(server.requests) == 1
    assert (caught.value.status, caught.value.retry_after, caught.value.retryable) == (429, 7.0, True)


@every_wire
@pytest.mark.parametrize("status", [500, 529])
def test_server_errors_are_network_errors_and_not_repeated_by_the_client(wire: Wire, status: int) -> None:
    with served(error(status, {"error": {"message": "broken"}})) as server:
        with pytest.raises(NetworkError) as caught:
            ask(wire.provider(server.url), request())
        assert len(server.requests) == 1
    assert (caught.value.status, caught.value.retryable) == (status, True)


TOO_LONG = {
    ANTHROPIC: (400, "prompt is too long: 204,859 tokens > 200,000 maximum", (204_859, 200_000)),
    OPENAI: (400, "Your input exceeds the context window of this model.", (None, None)),
    CHAT: (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8421 tokens.",
        (8421, 8192),
    ),
    COMPATIBLE: (400, "the request exceeds the available context size, try increasing it", (None, None)),
    AZURE: (400, "Input tokens exceed: reduce the length of the messages", (None, None)),
    GOOGLE: (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
             (1_200_000, 1_048_576)),
    VERTEX: (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
             (1_200_000, 1_048_576)),
    BEDROCK: (400, "Input is too long for requested model.", (None, None)),
}  # fmt: skip


@every_wire
def test_context_overflow_is_recognized(wire: Wire) -> None:
    status, sentence, tokens = TOO_LONG[wire]
    step = error(status, {"error": {"message": sentence}, "message": sentence})
    with served(step) as server, pytest.raises(ContextExceededError) as caught:
        ask(wire.provider(server.url), request())
    assert (caught.value.used_tokens, caught.value.max_tokens) == tokens
    assert not caught.value.retryable


@every_wire
def test_other_refusals_are_provider_errors(wire: Wire) -> None:
    step = error(400, {"error": {"message": "no such field"}, "message": "no such field"})
    with served(step) as server, pytest.raises(ProviderError, match="no such field") as caught:
        ask(wire.provider(server.url), request())
    assert type(caught.value) is ProviderError
    assert caught.value.status == 400


@every_wire
@every_loop
def test_dropped_connection_is_a_network_error(wire: Wire, backend: str) -> None:
    with served(text("Hello, world", drop=True)) as server:
        with pytest.raises(NetworkError):
            ask(wire.provider(server.url), request(), None, backend)
        assert len(server.requests) == 1


@every_wire
def test_refused_connection_is_a_network_error(wire: Wire) -> None:
    with served() as server:
        url = server.url
    with pytest.raises(NetworkError):
        ask(wire.provider(url), request())


@every_wire
@pytest.mark.parametrize("garbage", ["data: {not json\n\n", "data: {}\n\n"])
def test_garbage_in_the_stream_is_a_provider_error(wire: Wire, garbage: str) -> None:
    with served(text("Hello, world", garbage=garbage)) as server, pytest.raises(ProviderError):
        ask(wire.provider(server.url), request())


@every_wire
@every_loop
def test_cancelling_breaks_off_the_stream(wire: Wire, backend: str) -> None:
    with served(text("Hello, world", hang=True)) as server:
        provider: Any = wire.provider(server.url)

        async def cancelled() -> bool:
            with anyio.CancelScope() as scope:

                async def stop(_: Chunk) -> None:
                    scope.cancel()

                await provider.respond(request(), stop)
            await provider.aclose()
            return scope.cancelled_caught

        assert run(cancelled, backend)


@every_wire
def test_error_of_the_chunk_callback_passes_unchanged(wire: Wire) -> None:
    async def fail(_: Chunk) -> None:
        raise LookupError("mine")

    with served(text("Hello, world")) as server, pytest.raises(LookupError, match="mine"):
        ask(wire.provider(server.url), request(), fail)  # type: ignore[arg-type]


@every_wire
def test_timeout_is_a_network_error(wire: Wire) -> None:
    with served(text("Hello, world", hang=True)) as server, pytest.raises(NetworkError):
        ask(wire.provider(server.url), request(settings=ModelSettings(timeout=0.2)))


@every_wire
def test_tool_choice_is_sent(wire: Wire) -> None:
    choices = ("auto", "none", "required", "echo")
    with served(*[text("ok")] * len(choices)) as server:
        provider = wire.provider(server.url)
        for choice in choices:
            ask(provider, request(tool_choice=choice))
    sent = [_choice(one.body) for one in server.requests]
    assert len({json.dumps(one, sort_keys=True) for one in sent}) == len(choices) - (sent[2] == sent[3])
    assert "any" in json.dumps(sent[2]).lower() or "required" in json.dumps(sent[2])


def _choice(body: Any) -> Any:
    return body.get("tool_choice") or body.get("toolConfig", {}).get("toolChoice") or body.get("toolConfig")
