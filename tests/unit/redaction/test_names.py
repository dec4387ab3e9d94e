"""Secret names, and command lines without the values of secret options."""

import pytest

from agent_mux.redaction import HIDDEN, hide_secret_arguments, is_secret_name

NAMES = """ANTHROPIC_API_KEY OPENAI_API_KEY GITHUB_TOKEN GH_PAT DB_PASSWORD PGPASSWORD AWS_SECRET_ACCESS_KEY COOKIE
    Authorization Proxy-Authorization x-api-key apiKey api_key accessToken client_secret clientSecret set-cookie --token
    --api-key CLAUDE_CODE_OAUTH_TOKEN SECRET_KEY_BASE SIGNING_KEY passphrase SERVICE_CREDENTIALS token password KEY"""
HARMLESS = """MAX_TOKENS TOKENIZERS_PARALLELISM KEYBOARD MONKEY KEYMAP PATH PWD OLDPWD SSH_AUTH_SOCK max_output_tokens
    input_tokens --max-tokens max_tokens_total PUBLIC_KEY password_file TOKEN_LIMIT AWS_ACCESS_KEY_ID sort_key
    tokenizer AUTHOR COMPASS_HOME secretary TOKEN_URL"""


@pytest.mark.parametrize("name", NAMES.split())
def test_secret_name_is_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_harmless_name_is_not_secret(name: str) -> None:
    assert not is_secret_name(name)


def test_values_of_secret_options_are_hidden_in_command_lines() -> None:
    given = [
        "run",
        "--api-key",
        "v",
        "--token=v",
        "-H",
        "Authorization: Bearer v",
        "KEY=v",
        "--max-tokens",
        "5",
        "--token",
    ]
    assert hide_secret_arguments(given) == (
        "run", "--api-key", HIDDEN, f"--token={HIDDEN}", "-H", f"Authorization: {HIDDEN}", f"KEY={HIDDEN}",
        "--max-tokens", "5", "--token",
    )  # fmt: skip
