"""Edits of the context by Anthropic's API, with a service that plays the API."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from tests.unit.embedded.openapi.service import Reply, Service

from agent_loop import Agent, ContextCompacted
from agent_loop.errors import ConfigurationError
from agent_loop.providers import ContextEdit, Provider
from agent_loop.providers.access import ContextManagement
from agent_loop.providers.registry import provider_named

from .wires import BACKENDS, KEY, ChunkRecorder, request, run

EDIT = {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 5}}
APPLIED = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 4000, "cleared_tool_uses": 7}
THINKING = {"type": "clear_thinking_20251015", "cleared_input_tokens": 300, "cleared_thinking_turns": 2}
QUOTED = 'It prints "applied_edits" and more.'


def stream(applied: list[dict[str, Any]]) -> Reply:
    """Return the answer of the API with these edits."""
    usage = {"input_tokens": 100, "output_tokens": 5}
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": QUOTED}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": usage,
            "context_management": {"applied_edits": applied},
        },
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(body=body.encode(), headers={"content-type": "text/event-stream"})


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    service.reply = stream([APPLIED, THINKING])
    yield service
    service.close()


def anthropic(service: Service, management: ContextManagement | None) -> Provider:
    return provider_named(
        "anthropic:claude-haiku-4-5", base_url=service.url, api_key=KEY, environ={}, context_management=management
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_edits_are_requested_and_the_applied_ones_returned(service: Service, backend: str) -> None:
    provider: Any = anthropic(service, ContextManagement(edits=[EDIT]))

    async def ask() -> Any:
        answers = [await provider.respond(request(), ChunkRecorder())]
        await provider.aclose()
        answers.append(await provider.respond(request(), ChunkRecorder()))
        await provider.aclose()
        return answers

    for answer in run(ask, backend):
        assert answer.text == QUOTED
        assert answer.context_edits == (
            ContextEdit("clear_tool_uses_20250919", 4000, cleared_tool_uses=7),
            ContextEdit("clear_thinking_20251015", 300, cleared_thinking_turns=2),
        )
    for sent in service.requests:
        assert json.loads(sent.body)["context_management"] == {"edits": [EDIT]}
        assert "context-management-2025-06-27" in sent.headers["anthropic-beta"].split(",")


def test_without_configuration_nothing_is_requested(service: Service) -> None:
    provider: Any = anthropic(service, None)

    async def ask() -> Any:
        answer = await provider.respond(request(), ChunkRecorder())
        await provider.aclose()
        return answer

    assert run(ask).context_edits == ()
    assert "context_management" not in json.loads(service.last.body)
    assert "context-management" not in service.last.headers.get("anthropic-beta", "")


def test_applied_edits_are_events_of_the_run(service: Service) -> None:
    agent = Agent(anthropic(service, ContextManagement(edits=[EDIT])))
    events: list[Any] = []

    async def record(event: Any) -> None:
        events.append(event)

    async def bounded() -> Any:
        with anyio.fail_after(60):
            result = await agent.run("Hello", on_event=record)
            await agent._close_connections()
            return result

    assert anyio.run(bounded).text == QUOTED
    compacted = [event for event in events if isinstance(event, ContextCompacted)]
    assert [(event.tier, event.tokens_before, event.tokens_after) for event in compacted] == [
        ("clear_thinking_20251015", 400, 100),
        ("clear_tool_uses_20250919", 4400, 400),
    ]
    assert compacted[1].summary == "the provider cleared 7 tool uses"


@pytest.mark.parametrize("edits", [[], {"type": "clear_x"}, [{"type": "compact_20260112"}], ["clear_x"], [{}]])
def test_other_edits_are_refused(edits: Any) -> None:
    with pytest.raises(ConfigurationError, match="context_management"):
        ContextManagement(edits=edits)


def test_other_vendors_have_no_context_management() -> None:
    with pytest.raises(ConfigurationError, match="'openai' has no context_management"):
        provider_named("openai:gpt-5", api_key=KEY, environ={}, context_management=ContextManagement(edits=[EDIT]))
