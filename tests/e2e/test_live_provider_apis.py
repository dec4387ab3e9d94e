"""The embedded agent with every model API: a tool call and its result, through `amux run native`."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.terminal import amux

from agent_mux_testing.live import DUMMY_KEY, KitContext, ModelApi, Say, Shell, ToolPart
from agent_mux_testing.model_server.script import Block, FunctionCall, Item, ToolUse


@dataclass(frozen=True, kw_only=True)
class ProviderApi:
    """A provider as users configure it: the model name and the environment variables."""

    model: str
    model_api: ModelApi
    path: str = ""
    """The path of the base URL."""
    url_variable: str
    """The variable with the base URL."""
    key_variable: str
    """The variable with the API key."""


PROVIDER_APIS = {
    "anthropic": ProviderApi(
        model="anthropic:claude-sonnet-4-5",
        model_api="messages",
        url_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": ProviderApi(
        model="openai:gpt-5-mini",
        model_api="responses",
        path="/v1",
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
    ),
    "openai-chat": ProviderApi(
        model="openai-chat:gpt-5-mini",
        model_api="chat",
        path="/v1",
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
    ),
    "openai-compatible": ProviderApi(
        model="openai-compatible:anything",
        model_api="chat",
        path="/v1",
        url_variable="OPENAI_COMPATIBLE_BASE_URL",
        key_variable="OPENAI_COMPATIBLE_API_KEY",
    ),
    "google": ProviderApi(
        model="google:gemini-2.5-flash",
        model_api="generate",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        key_variable="GEMINI_API_KEY",
    ),
}


@pytest.fixture(params=PROVIDER_APIS)
def api(request: pytest.FixtureRequest) -> ProviderApi:
    return PROVIDER_APIS[request.param]


@pytest.fixture
def native(api: ProviderApi, native: LiveAgent) -> LiveAgent:
    """Return the embedded agent with only the variables of this provider."""

    def environment(context: KitContext) -> dict[str, str]:
        own = {api.url_variable: context.url + api.path, api.key_variable: DUMMY_KEY}
        return context.minimal(AMUX_AGENT_HOME=str(context.home / "agent"), **own)

    def format_tool_call(part: ToolPart, workspace: Path) -> Block | Item:
        block = kit.format_tool_call(part, workspace)
        if api.model_api == "responses" and isinstance(block, ToolUse):
            return FunctionCall(block.name, block.input)
        return block

    kit = native.kit
    native.kit = replace(kit, api=api.model_api, environment=environment, format_tool_call=format_tool_call)
    return native


def test_tool_call_and_result_over_every_api(native: LiveAgent, api: ProviderApi) -> None:
    native.script(native.answer(Shell("echo hi; touch made")), native.answer(Say("All done.")))
    printed = amux(native, "run", *native.agent_arguments, "do the thing", "--yolo", "--json", f"--model={api.model}")
    types, result = printed.check_stream()
    assert (printed.code, result["text"]) == (0, "All done."), printed
    assert native.file("made").exists()
    assert types.count("tool_result") == 1
    assert {request.kind for request in native.model.requests} == {api.model_api}
    assert native.model.received("hi")
    assert result["tokenUsage"]["outputTokens"] > 0
    assert result["cost"]["source"] == ("unknown" if "compatible" in api.model else "native")


def test_wrong_key_is_reported_as_auth_error(native: LiveAgent, api: ProviderApi) -> None:
    native.script(native.refusal("unauthorized", repeat=True))
    printed = amux(native, "run", *native.agent_arguments, "do the thing", "--json", f"--model={api.model}")
    _, result = printed.check_stream()
    assert result["exitReason"] == "failed"
    assert result["error"]["code"] == "AUTH_ERROR"
    assert DUMMY_KEY not in printed.out + printed.err
