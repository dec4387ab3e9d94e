"""The same script over OpenAI chat completions and Gemini. Every test is bounded."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest

from agent_mux_testing.model_server import (
    HttpError,
    Script,
    ScriptedModelServer,
    ScriptStep,
    ScriptText,
    ScriptThinking,
    ToolUse,
    say,
)

pytestmark = pytest.mark.anyio
BOUND = 60.0
CHAT, GEMINI = "/v1/chat/completions", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
CHAT_BODY: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "bash"}}],
}
GEMINI_BODY: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "tools": [{"functionDeclarations": [{"name": "run"}]}],
}
THINK_SAY_CALL = ScriptStep(
    blocks=(ScriptThinking("Hm, well."), ScriptText("Let me see."), ToolUse("run", {"command": "ls"}))
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextlib.asynccontextmanager
async def serving(
    *steps: ScriptStep, **script: Any
) -> AsyncIterator[tuple[ScriptedModelServer, aiohttp.ClientSession]]:
    async with (
        asyncio.timeout(BOUND),
        ScriptedModelServer(Script(steps=steps, **script)) as server,
        aiohttp.ClientSession() as session,
    ):
        yield server, session


async def streamed(*steps: ScriptStep, path: str, body: dict[str, Any]) -> list[Any]:
    """The data of a stream's events; `[DONE]` as it is."""
    async with serving(*steps) as (server, session), session.post(server.url + path, json=body) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        lines = (await response.text()).splitlines()
    assert not [line for line in lines if line and not line.startswith("data: ")]
    return [line[6:] if line == "data: [DONE]" else json.loads(line[6:]) for line in lines if line]


async def asked(path: str, body: dict[str, Any], *steps: ScriptStep, **script: Any) -> tuple[int, Any]:
    async with serving(*steps, **script) as (server, session), session.post(server.url + path, json=body) as response:
        return response.status, await response.json()


def deltas(chunks: Sequence[Any]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk != "[DONE]" and chunk["choices"]]


def parts(chunks: Sequence[Any]) -> list[dict[str, Any]]:
    return [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]


# OpenAI chat completions


async def test_chat_streams_thoughts_text_and_calls() -> None:
    chunks = await streamed(THINK_SAY_CALL, path=CHAT, body=CHAT_BODY)
    found = deltas(chunks)
    assert "".join(delta.get("reasoning_content") or "" for delta in found) == "Hm, well."
    assert "".join(delta.get("content") or "" for delta in found) == "Let me see."
    calls = [call for delta in found for call in delta.get("tool_calls", ())]
    assert calls[0]["id"].startswith("call_")
    assert calls[0]["function"]["name"] == "run"
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"command": "ls"}


async def test_chat_ends_with_its_reason_its_usage_and_a_mark() -> None:
    *_, ending, usage, mark = await streamed(THINK_SAY_CALL, path=CHAT, body=CHAT_BODY)
    assert ending["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 30}
    assert mark == "[DONE]"


async def test_two_calls_of_a_chat_have_their_own_numbers() -> None:
    both = ScriptStep(blocks=(ToolUse("one", {}), ToolUse("two", raw_input='{"a": ')))
    calls = [call for delta in deltas(await streamed(both, path=CHAT, body=CHAT_BODY))
             for call in delta.get("tool_calls", ())]  # fmt: skip
    assert {call["index"]: call["function"]["name"] for call in calls if "id" in call} == {0: "one", 1: "two"}
    assert "".join(call["function"]["arguments"] for call in calls if call["index"] == 1) == '{"a": '


async def test_a_chat_without_stream_comes_whole() -> None:
    status, completion = await asked(CHAT, {**CHAT_BODY, "stream": False}, THINK_SAY_CALL)
    message = completion["choices"][0]["message"]
    assert status == 200
    assert (message["content"], message["reasoning_content"]) == ("Let me see.", "Hm, well.")
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}


async def test_a_dropped_chat_has_no_end() -> None:
    chunks: list[Any] = []
    async with serving(ScriptStep(blocks=(ScriptText("cut here"),), drop=True)) as (server, session):
        with contextlib.suppress(aiohttp.ClientError):
            async with session.post(server.url + CHAT, json=CHAT_BODY) as response:
                async for line in response.content:
                    chunks += [json.loads(line[6:])] if line.startswith(b"data: {") else []
    assert "".join(delta.get("content") or "" for delta in deltas(chunks)) == "cut here"
    assert not [chunk for chunk in chunks if chunk["choices"] and chunk["choices"][0]["finish_reason"]]


async def test_a_chat_without_tools_leaves_the_steps_alone() -> None:
    body = {**CHAT_BODY, "tools": [], "stream": False}
    _, completion = await asked(CHAT, body, say("main"), aux=say("a title"))
    assert completion["choices"][0]["message"]["content"] == "a title"


# Gemini


async def test_gemini_streams_thoughts_text_and_calls() -> None:
    chunks = await streamed(THINK_SAY_CALL, path=GEMINI, body=GEMINI_BODY)
    found = parts(chunks)
    assert "".join(part["text"] for part in found if part.get("thought")) == "Hm, well."
    assert "".join(part["text"] for part in found if "text" in part and not part.get("thought")) == "Let me see."
    assert [part["functionCall"] for part in found if "functionCall" in part] == [
        {"name": "run", "args": {"command": "ls"}}
    ]
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["cachedContentTokenCount"] == 30
    assert chunks[-1]["modelVersion"] == "gemini-2.5-pro"


async def test_gemini_without_stream_comes_whole() -> None:
    path = "/v1beta/models/gemini-2.5-pro:generateContent"
    status, answer = await asked(
        path, GEMINI_BODY, ScriptStep(blocks=(ScriptText("cut short"),), stop_reason="MAX_TOKENS")
    )
    assert status == 200
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "cut short"}]
    assert answer["candidates"][0]["finishReason"] == "MAX_TOKENS"


async def test_gemini_counts_tokens() -> None:
    assert await asked("/v1beta/models/gemini-2.5-pro:countTokens", GEMINI_BODY) == (200, {"totalTokens": 123})


async def test_gemini_gets_json_in_the_shape_it_asks_for() -> None:
    shape = {
        "type": "OBJECT",
        "properties": {
            "reasoning": {"type": "STRING"},
            "next_speaker": {"type": "string", "enum": ["user", "model"]},
            "score": {"type": "integer"},
            "done": {"type": "boolean"},
            "list": {"type": "array"},
            "odd": True,
        },
    }
    config = {"responseMimeType": "application/json", "responseJsonSchema": shape}
    body = {"contents": GEMINI_BODY["contents"], "generationConfig": config}
    _, answer = await asked("/v1beta/models/m:generateContent", body, say("main"))
    assert json.loads(answer["candidates"][0]["content"]["parts"][0]["text"]) == {
        "reasoning": "x", "next_speaker": "user", "score": 10, "done": False, "list": [], "odd": "x",
    }  # fmt: skip


async def test_an_auxiliary_step_comes_before_the_schema_example() -> None:
    config = {"responseMimeType": "application/json"}
    body = {"contents": GEMINI_BODY["contents"], "generationConfig": config}
    step = ScriptStep(is_aux=True, blocks=(ScriptText("scripted"),))
    _, answer = await asked("/v1beta/models/m:generateContent", body, step)
    assert answer["candidates"][0]["content"]["parts"] == [{"text": "scripted"}]


@pytest.mark.parametrize(("path", "body"), [(CHAT, CHAT_BODY), (GEMINI, GEMINI_BODY)])
async def test_errors_and_secrets(path: str, body: dict[str, Any]) -> None:
    refusal = ScriptStep(error=HttpError(429, {"error": {"message": "slow down"}}, {"retry-after": "1"}))
    headers = {"authorization": "Bearer sk-real", "x-goog-api-key": "sk-real"}
    async with (
        serving(refusal) as (server, session),
        session.post(server.url + path, json=body, headers=headers) as response,
    ):
        assert response.status == 429
        assert response.headers["retry-after"] == "1"
        assert "sk-real" not in str(server.requests[0].headers)
        assert b"sk-real" not in server.requests[0].log_line()
        assert server.requests[0].kind == ("chat" if path == CHAT else "generate")


async def test_a_step_can_be_for_one_model_of_gemini() -> None:
    other = ScriptStep(model="flash", blocks=(ScriptText("for flash"),))
    chunks = await streamed(other, say("for pro"), path=GEMINI, body=GEMINI_BODY)
    assert parts(chunks)[0]["text"].startswith("for")
    assert "".join(part["text"] for part in parts(chunks)) == "for pro"
