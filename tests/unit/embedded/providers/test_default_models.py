"""The model of a run that names none."""

from pathlib import Path

import pytest

from agent_loop.errors import MissingKeyError
from agent_loop.providers.access import VARIABLES
from agent_loop.providers.default_models import DEFAULT_MODELS, WITHOUT_DEFAULT, default_model
from agent_loop.providers.registry import provider_named
from agent_mux.models.registry import Models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "provider"),
    [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("GOOGLE_API_KEY", "google"),
        ("GEMINI_API_KEY", "google"),
        ("GEMINI_API_KEY OPENAI_API_KEY ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY OPENAI_API_KEY", "openai"),
        ("AZURE_OPENAI_API_KEY GEMINI_API_KEY", "google"),
    ],
)
def test_first_provider_with_a_key_is_used(variables: str, provider: str) -> None:
    environ = dict.fromkeys(variables.split(), "key")
    assert default_model(environ) == f"{provider}:{DEFAULT_MODELS[provider]}"
    assert provider_named(default_model(environ), environ=environ).id == provider


@pytest.mark.parametrize("environ", [{}, {"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}])
def test_without_a_key_the_error_names_the_next_steps(environ: dict[str, str]) -> None:
    with pytest.raises(MissingKeyError) as raised:
        default_model(environ)
    for part in ("no API key is set", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "--model provider:model",
                 "--model scripted:PATH", "amux demo"):  # fmt: skip
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "model"),
    [
        ("AZURE_OPENAI_API_KEY", "azure:DEPLOYMENT"),
        ("OPENAI_COMPATIBLE_API_KEY", "openai-compatible:MODEL"),
        ("AWS_BEARER_TOKEN_BEDROCK", "bedrock:MODEL"),
    ],
)
def test_key_of_a_provider_without_default_model_is_named(variable: str, model: str) -> None:
    with pytest.raises(MissingKeyError, match=f"with {variable}, use --model {model}"):
        default_model({variable: "key"})


def test_every_key_selects_a_model_or_is_explained() -> None:
    by_key = {provider for provider, names in VARIABLES.items() if names.api_key}
    assert by_key == {*DEFAULT_MODELS, *WITHOUT_DEFAULT, "openai-chat"}  # the last one has the key of openai


@pytest.mark.parametrize("provider", DEFAULT_MODELS)
def test_default_models_are_known_and_current(provider: str, tmp_path: Path) -> None:
    agent = {"anthropic": "claude", "openai": "codex", "google": "gemini"}[provider]
    model = Models(directory=tmp_path).get(agent, DEFAULT_MODELS[provider])
    assert (model.provider, model.deprecated) == (provider, False)
