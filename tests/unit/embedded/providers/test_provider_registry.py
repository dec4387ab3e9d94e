"""Creation of providers by name."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from agent_loop.errors import ConfigurationError
from agent_loop.providers.access import VARIABLES, Access, complete_access
from agent_loop.providers.registry import PROVIDER_NAMES, provider_named

from .wires import KEY, WIRES, Wire, ask, request, served, text


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_each_protocol_has_a_name(wire: Wire) -> None:
    provider = wire.provider("http://127.0.0.1:9")
    vendor, _, model = wire.name.partition(":")
    assert (provider.id, provider.model) == (vendor, model)
    assert vendor in PROVIDER_NAMES


def test_capabilities_are_those_of_the_model() -> None:
    claude = provider_named("anthropic:claude-haiku-4-5", api_key=KEY, environ={}).capabilities
    assert (claude.vision, claude.thinking, claude.structured_output) == (True, True, True)
    assert claude.context_window == 200_000
    own = provider_named("openai-compatible:own", base_url="http://127.0.0.1:9/v1", environ={}).capabilities
    assert own.context_window is None


def test_unknown_provider_names_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="unknown provider 'acme'; use one of anthropic, openai, "):
        provider_named("acme:x", environ={})


def test_model_without_a_provider_is_refused_as_such() -> None:
    with pytest.raises(ConfigurationError, match="the model 'gpt-5-mini' names no provider; use PROVIDER:gpt-5-mini"):
        provider_named("gpt-5-mini", environ={})


@pytest.mark.parametrize("name", ["anthropic", "anthropic:", "bedrock"])
def test_a_name_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"lacks a model; use (anthropic|bedrock):MODEL"):
        provider_named(name, environ={})


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("anthropic:x", "anthropic needs an API key; set ANTHROPIC_API_KEY or pass api_key="),
        ("openai:x", "openai needs an API key; set OPENAI_API_KEY or pass api_key="),
        ("google:x", "google needs an API key; set GOOGLE_API_KEY or GEMINI_API_KEY or pass api_key="),
        ("azure:x", "azure needs an address; set AZURE_OPENAI_ENDPOINT or pass base_url="),
        ("vertex:x", "vertex needs a project; set GOOGLE_CLOUD_PROJECT or pass project="),
        ("bedrock:x", "bedrock needs a region; set AWS_REGION or AWS_DEFAULT_REGION or pass region="),
        ("openai-compatible:x", "openai-compatible needs an address; set OPENAI_COMPATIBLE_BASE_URL or pass base_url="),
    ],
)
def test_missing_value_is_named_with_its_variable(name: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        provider_named(name, environ={})
    assert str(caught.value) == what


def test_key_and_address_come_from_the_environment() -> None:
    with served(text("Hello")) as server:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        assert ask(provider_named("anthropic:claude-haiku-4-5", environ=environ), request()).text == "Hello"
    headers = server.requests[0].headers
    assert "(redacted)" in {headers.get("x-api-key"), headers.get("authorization")}


def test_azure_proves_itself_with_its_own_header() -> None:
    with served(text("Hello")) as server:
        ask(provider_named("azure:gpt-5", base_url=server.url, api_key=KEY, environ={}), request())
    assert "api-key" in server.requests[0].headers


def test_arguments_override_the_environment() -> None:
    found = complete_access("openai", Access(api_key="said"), {"OPENAI_API_KEY": "environment"})
    assert found.api_key == "said"


def test_secrets_are_not_shown() -> None:
    environ = {"AWS_REGION": "x", "AWS_SECRET_ACCESS_KEY": "c-secret"}
    access = complete_access("bedrock", Access(api_key=KEY, credentials={"a": "b-secret"}), environ)
    shown = repr(access)
    assert not any(secret in shown for secret in (KEY, "b-secret", "c-secret"))
    assert set(access.all_secrets()) == {KEY, "b-secret", "c-secret"}


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "azure", "google", "openai-compatible"])
def test_invalid_address_is_refused(vendor: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"'file:///etc' is not a valid address for {vendor}; start it with https://"
    ):
        provider_named(f"{vendor}:x", base_url="file:///etc", api_key=KEY, environ={})


def test_what_a_client_refuses_is_a_configuration_error_without_the_key() -> None:
    with pytest.raises(ConfigurationError, match="bedrock:x cannot be used: ") as caught:
        provider_named("bedrock:x", api_key=KEY, region=f"{KEY} is no region", environ={})
    assert KEY not in str(caught.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agent_loop.providers.pydantic_ai.vendors", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'agent-mux\[native\]'"):
        provider_named("anthropic:x", api_key=KEY, environ={})


@pytest.mark.parametrize(
    ("name", "module", "kind", "rest"),
    [
        ("scripted", "agent_loop.providers.scripted_provider", "ScriptedProvider", ""),
        ("scripted:a.json", "agent_loop.providers.scripted_provider", "ScriptedProvider", "a.json"),
        ("replay:C:/b.json", "agent_loop.sessions.replay_provider", "ReplayProvider", "C:/b.json"),
    ],
)
def test_offline_providers_read_their_own_names(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, kind: str, rest: str
) -> None:
    made: list[str] = []
    replacement = SimpleNamespace(**{kind: SimpleNamespace(from_name=lambda received: made.append(received) or "it")})
    monkeypatch.setitem(sys.modules, module, replacement)
    assert provider_named(name, environ={}) == "it"
    assert made == [rest]


def test_every_vendor_can_be_built_and_has_its_variables() -> None:
    from agent_loop.providers.pydantic_ai.vendors import PROFILES, VENDORS

    assert {*VENDORS, *PROFILES} == set(VARIABLES)


def test_importing_providers_is_light() -> None:
    code = "import sys, json, agent_loop.providers.registry; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    loaded: set[Any] = set(json.loads(output.stdout))
    assert not loaded & {"pydantic_ai", "anthropic", "openai", "google.genai", "boto3", "httpx", "importlib.metadata"}
