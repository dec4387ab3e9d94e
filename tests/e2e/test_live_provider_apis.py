"""The embedded agent and every API that a model is asked by: a tool call and its result, through `amux run native`."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.terminal import amux

from agent_mux_testing.live import DUMMY_KEY, KitContext, ModelApi, Say, Shell, ToolPart
from agent_mux_testing.model_server.script import Block, FunctionCall, Item, ToolUse
from agent_mux_testing.provision import find_agent


@dataclass(frozen=True, kw_only=True)
class Wire:
    """How a provider is reached: as the user would, by its name and its variables."""

    model: str
    api: ModelApi
    path: str = ""
    """Of the base URL."""
    address: str
    """Variable of the base URL."""
    key: str


WIRES = {
    "anthropic": Wire(
        model="anthropic:claude-sonnet-4-5", api="messages", address="ANTHROPIC_BASE_URL", key="ANTHROPIC_API_KEY"
    ),
    "openai": Wire(
        model="openai:gpt-5-mini", api="responses", path="/v1", address="OPENAI_BASE_URL", key="OPENAI_API_KEY"
    ),
    "openai-chat": Wire(
        model="openai-chat:gpt-5-mini", api="chat", path="/v1", address="OPENAI_BASE_URL", key="OPENAI_API_KEY"
    ),
    "openai-compatible": Wire(
        model="openai-compatible:anything",
        api="chat",
        path="/v1",
        address="OPENAI_COMPATIBLE_BASE_URL",
        key="OPENAI_COMPATIBLE_API_KEY",
    ),
    "google": Wire(
        model="google:gemini-2.5-flash", api="generate", address="GOOGLE_GEMINI_BASE_URL", key="GEMINI_API_KEY"
    ),
}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def native(wire: Wire, tmp_path: Path) -> Iterator[LiveAgent]:
    """The embedded agent, with nothing but the variables of this provider."""
    found = find_agent("native")
    if found is None:
        pytest.skip("native is not there; try: python -m agent_mux_testing.provision native")
    with ExitStack() as stack:
        live = LiveAgent(found, tmp_path, stack)

        def environment(context: KitContext) -> dict[str, str]:
            own = {wire.address: context.url + wire.path, wire.key: DUMMY_KEY}
            return context.minimal(AMUX_AGENT_HOME=str(context.home / "agent"), **own)

        def format_tool_call(part: ToolPart, workspace: Path) -> Block | Item:
            block = kit.format_tool_call(part, workspace)
            if wire.api == "responses" and isinstance(block, ToolUse):
                return FunctionCall(block.name, block.input)
            return block

        kit = live.kit
        live.kit = replace(kit, api=wire.api, environment=environment, format_tool_call=format_tool_call)
        yield live


def test_every_wire(native: LiveAgent, wire: Wire) -> None:
    native.script(native.answer(Shell("echo hi; touch made")), native.answer(Say("All done.")))
    printed = amux(native, "run", *native.agent_arguments, "do the thing", "--yolo", "--json", f"--model={wire.model}")
    types, result = printed.check_stream()
    assert (printed.code, result["text"]) == (0, "All done."), printed
    assert native.file("made").exists()
    assert types.count("tool_result") == 1
    assert {request.kind for request in native.model.requests} == {wire.api}
    assert native.model.received("hi")
    assert result["tokenUsage"]["outputTokens"] > 0
    assert result["cost"]["source"] == ("unknown" if "compatible" in wire.model else "native")


def test_every_wire_tells_a_wrong_key(native: LiveAgent, wire: Wire) -> None:
    native.script(native.refusal("unauthorized", repeat=True))
    printed = amux(native, "run", *native.agent_arguments, "do the thing", "--json", f"--model={wire.model}")
    _, result = printed.check_stream()
    assert result["exitReason"] == "failed"
    assert result["error"]["code"] == "AUTH_ERROR"
    assert DUMMY_KEY not in printed.out + printed.err
