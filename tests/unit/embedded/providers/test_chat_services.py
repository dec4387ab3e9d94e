"""Services with the chat-completions API, headers, differences of servers, and registered providers."""

import importlib.metadata
import json
from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, reply

from agent_loop import Agent
from agent_loop.behavior import Behavior
from agent_loop.errors import ConfigurationError, MissingKeyError, ProviderError
from agent_loop.messages import AssistantMessage, Text, user
from agent_loop.providers import NO_CACHE, CacheSettings, ModelSettings
from agent_loop.providers import registry as providers
from agent_loop.providers.access import CHAT_SERVICES, Access, Compat
from agent_loop.providers.registry import provider_named, register_provider
from agent_loop.sessions import LoopConfig

from .wires import ANTHROPIC, AZURE, BEDROCK, CHAT, GOOGLE, KEY, OPENAI, Wire, ask, request, served, text

MODEL = "openai/some-model"
"""OpenRouter requires the name of the vendor."""


def service(name: str, url: str, **known: Any) -> Any:
    return provider_named(f"{name}:{MODEL}", base_url=f"{url}/v1", api_key=KEY, environ={}, **known)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAT_SERVICES)
def test_usual_services_have_names_and_speak_chat_completions(name: str) -> None:
    with served(text("Hello")) as server:
        provider = service(name, server.url)
        answer = ask(provider, request(settings=ModelSettings(max_tokens=321)))
    assert answer.text == "Hello"
    assert (provider.id, provider.model, provider.api) == (name, MODEL, "openai-chat")
    assert [each.path for each in server.requests] == ["/v1/chat/completions"]
    assert server.requests[0].body["max_tokens"] == 321


@pytest.mark.parametrize("name", CHAT_SERVICES)
def test_service_has_its_address_and_its_key_in_the_environment(name: str) -> None:
    keys = CHAT_SERVICES[name].api_key
    provider = provider_named(f"{name}:{MODEL}", environ={keys[0]: KEY} if keys else {})
    assert provider.base_url.rstrip("/") == (CHAT_SERVICES[name].default_base_url or "").rstrip("/")  # type: ignore[attr-defined]
    if CHAT_SERVICES[name].needs:
        with pytest.raises(MissingKeyError, match=keys[0]):
            provider_named(f"{name}:{MODEL}", environ={})


@pytest.mark.slow
@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI, CHAT, AZURE, GOOGLE, BEDROCK], ids=lambda wire: wire.name)
def test_headers_are_sent_and_redacted(wire: Wire) -> None:
    body = {"error": {"message": "no tok-secret"}, "message": "no tok-secret"}
    refusal = text("never", error={"status": 400, "body": body})
    with served(text("Hello"), refusal) as server:
        known = {"credentials": None, **wire.known}
        provider = provider_named(
            wire.name, base_url=server.url + wire.path, environ={}, headers={"X-Team": "tok-secret"}, **known
        )
        assert ask(provider, request()).text == "Hello"
        with pytest.raises(ProviderError) as caught:
            ask(provider, request())
    assert server.requests[0].headers["x-team"] == "tok-secret"
    assert "tok-secret" not in str(caught.value)


def test_compat_describes_a_server() -> None:
    compat = Compat(
        max_tokens_field="max_completion_tokens", developer_role=True, json_schema=True, images=False,
        context_window=32_000, forced_tool_choice=False,
    )  # fmt: skip
    with served(text("Hello")) as server:
        provider = service("openai-compatible", server.url, compat=compat)
        asked = request(system="Be kind.", tool_choice="required", settings=ModelSettings(max_tokens=321))
        ask(provider, asked)
    body = server.requests[0].body
    assert body["max_completion_tokens"] == 321
    assert body["messages"][0]["role"] == "developer"
    assert body["tool_choice"] == "auto"
    able = provider.capabilities
    assert (able.context_window, able.vision, able.structured_output) == (32_000, False, True)


def test_default_role_of_instructions_is_system() -> None:
    with served(text("Hello")) as server:
        ask(service("openai-compatible", server.url), request(system="Be kind."))
    assert server.requests[0].body["messages"][0]["role"] == "system"


def test_registered_provider_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_registered", {})
    made: list[tuple[str, Access]] = []

    def acme(model: str, access: Access) -> FakeProvider:
        made.append((model, access))
        return FakeProvider(reply("ok"))

    register_provider("acme", acme)
    assert Agent("acme:one").run_sync("go").text == "ok"
    provider_named("acme:two", api_key="k", headers={"a": "b"}, environ={})
    assert [(model, access.api_key, dict(access.headers)) for model, access in made] == [
        ("one", None, {}), ("two", "k", {"a": "b"}),
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match="lacks a model"):
        provider_named("acme", environ={})
    with pytest.raises(ConfigurationError, match="without a colon"):
        register_provider("a:b", acme)


def test_package_may_provide_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        @staticmethod
        def load() -> Any:
            return lambda _model, _access: FakeProvider(reply("ok"))

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **asked: [Found] if asked["name"] == "acme" else [])
    assert isinstance(provider_named("acme:one", environ={}), FakeProvider)
    with pytest.raises(ConfigurationError, match="unknown provider 'nobody'"):
        provider_named("nobody:x", environ={})


def test_record_of_a_loop_has_the_configuration_of_its_model() -> None:
    with served(text("Hello")) as server:
        url = server.url
        address = url.replace("//", "//user:pass@")
        provider = provider_named(
            "openai-compatible:m",
            base_url=f"{address}/v1",
            api_key=KEY,
            environ={},
            compat=Compat(context_window=9_000),
        )
        one = Agent(provider, behavior=Behavior(max_tokens=100, temperature=0.5, thinking="low"), config_id="mine")
        one.run_sync("go")
    assert one.session.loops[0].config == LoopConfig(
        config_id="mine",
        name="openai-compatible:m",
        provider="openai-compatible",
        model="m",
        api="openai-chat",
        base_url=f"{url}/v1/",
        reasoning=False,
        context_window=9_000,
        thinking="low",
        max_tokens=100,
        temperature=0.5,
    )


@pytest.mark.parametrize(
    ("model", "count"), [("anthropic/claude-sonnet-4.5", 3), ("google/gemini-2.5-pro", 2), ("openai/gpt-5", 0)]
)
def test_openrouter_gets_breakpoints_for_the_vendors_that_use_them(model: str, count: int) -> None:
    history = (user("One"), AssistantMessage(content=(Text("Two"),)), user("Three"))
    with served(text("Hello")) as server:
        provider = provider_named(f"openrouter:{model}", base_url=f"{server.url}/v1", api_key=KEY, environ={})
        asked = request(*history, system="Be kind.", settings=ModelSettings(cache=CacheSettings()))
        assert ask(provider, asked).text == "Hello"
    assert json.dumps(server.requests[0].body).count("cache_control") == count


def test_openrouter_gets_no_breakpoints_without_caching() -> None:
    with served(text("Hello")) as server:
        provider = provider_named(
            "openrouter:anthropic/claude-sonnet-4.5", base_url=f"{server.url}/v1", api_key=KEY, environ={}
        )
        ask(provider, request(system="Be kind.", settings=ModelSettings(cache=NO_CACHE)))
    assert "cache_control" not in json.dumps(server.requests[0].body)
