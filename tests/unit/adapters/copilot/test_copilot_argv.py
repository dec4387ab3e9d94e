"""Command line and context of Copilot runs, with the user's own provider."""

import json
from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters.copilot import ADAPTER
from agent_mux_adapters.copilot.argv import model_of, provider_of, unsendable_secrets
from agent_mux_adapters.copilot.requests import HeadlessContext, session_params

HEAD = ("/bin/copilot", "--headless", "--no-auto-update", "--stdio")
ONE_SHOT = ("/bin/copilot", "--output-format=json", "--yolo", "--no-color", "--no-auto-update")
URL = "https://models.example/v1"
OWN = {"COPILOT_PROVIDER_BASE_URL": URL, "COPILOT_PROVIDER_API_KEY": "sk-secret", "COPILOT_MODEL": "big"}
HEADERS = {**OWN, "COPILOT_PROVIDER_HEADERS": "X-Gateway: secret"}


def options_of(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "copilot", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def spawn(environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(executable="/bin/copilot", temp_dir="/run/tmp", environ=environ or {})
    return ADAPTER.spawn(options_of(**options), machine)


def context(environ: dict[str, str] | None = None, **options: Any) -> HeadlessContext:
    assert ADAPTER.context is not None
    made = ADAPTER.context(options_of(**options), spawn(environ, **options))
    assert isinstance(made, HeadlessContext)
    return made


def test_a_run_is_headless_and_its_prompt_is_not_in_argv() -> None:
    args = spawn(prompt="--help\nme")
    assert (args.argv, args.protocol, args.stdin_text) == (HEAD, "headless", None)
    assert context(prompt="--help\nme").prompt == "--help\nme"
    assert not args.counts_turns
    assert args.notes == ()


def test_without_a_provider_the_stored_login_is_used() -> None:
    assert "--no-auto-login" not in spawn().argv
    assert spawn(OWN).argv == (*HEAD, "--no-auto-login")


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k", "thinking_budget_tokens"])
def test_unsupported_options_are_noted(name: str) -> None:
    assert spawn(**{name: 1}).notes == (f"copilot has no setting for {name}: ignored",)


def test_unsupported_attachments_and_prompts_are_noted() -> None:
    notes = spawn(system_prompt="x", system_prompt_mode="prepend", attachments=[Attachment(url="https://x/y")]).notes
    assert ["acts as 'append'" in notes[0], "does not support links" in notes[1]] == [True, True]
    assert "only of the user's own provider" in spawn(max_output_tokens=5).notes[0]


def test_mcp_servers_are_in_a_file_of_the_run() -> None:
    servers = [
        McpServer("echo", command="python", args=("-m", "echo"), env={"TOKEN": "secret"}),
        McpServer("far", transport="streamable-http", url="https://x/mcp", headers={"Authorization": "secret"}),
        McpServer("old", transport="sse", url="https://x/sse"),
    ]
    for args in (spawn(mcp_servers=servers), spawn(HEADERS, mcp_servers=servers)):
        assert args.argv[-1] == "--additional-mcp-config=@/run/tmp/mcp.json"
        assert "secret" not in " ".join(args.argv)
        assert json.loads(args.files["mcp.json"])["mcpServers"] == {
            "echo": {
                "type": "local", "command": "python", "args": ["-m", "echo"], "env": {"TOKEN": "secret"},
                "tools": ["*"],
            },
            "far": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "secret"}, "tools": ["*"]},
            "old": {"type": "sse", "url": "https://x/sse", "headers": {}, "tools": ["*"]},
        }  # fmt: skip


# -- secrets that the headless protocol cannot carry


def test_a_plain_run_with_an_unsendable_secret_is_one_shot() -> None:
    args = spawn(HEADERS, prompt="--help", model="m", thinking_effort="low", session_id="-s",
                 attachments=[Attachment(file_path="/a.png")])  # fmt: skip
    assert args.argv == (*ONE_SHOT, "--model=m", "--reasoning-effort=low", "--resume=-s", "--attachment=/a.png")
    assert (args.protocol, args.stdin_text) == ("json", "--help")
    assert ADAPTER.context is not None
    assert ADAPTER.context(options_of(), args).prompt is None


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"on_approval_request": print},
        {"on_input_required": print},
        {"fork_session_id": "s"},
        {"no_session": True},
        {"system_prompt": "be brief"},
        {"output_schema": {"type": "object"}},
        {"attachments": [Attachment(base64="AA==", mime_type="image/png")]},
    ],
)
def test_a_headless_run_omits_an_unsendable_secret_with_a_note(options: dict[str, Any]) -> None:
    args = spawn(HEADERS, **options)
    assert args.protocol == "headless"
    assert any("COPILOT_PROVIDER_HEADERS is not passed on" in note for note in args.notes)


# -- the user's own provider


def test_a_provider_is_sent_without_its_key() -> None:
    made = context(OWN)
    assert made.provider == {"type": "openai", "baseUrl": URL, "apiKeyCommand": "printenv COPILOT_PROVIDER_API_KEY"}
    assert made.model == "big"
    assert context(OWN, model="small").model == "small"
    assert "sk-secret" not in json.dumps(session_params(made))


def test_the_whole_provider() -> None:
    provider = provider_of({
        "COPILOT_PROVIDER_BASE_URL": URL,
        "COPILOT_PROVIDER_TYPE": "azure",
        "COPILOT_PROVIDER_WIRE_API": "responses",
        "COPILOT_PROVIDER_TRANSPORT": "websocket",
        "COPILOT_PROVIDER_MODEL_ID": "id",
        "COPILOT_PROVIDER_WIRE_MODEL": "wire",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "6000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "many",
        "COPILOT_PROVIDER_AZURE_API_VERSION": "2026-01-01",
    })  # fmt: skip
    assert provider == {
        "type": "azure", "baseUrl": URL, "wireApi": "responses", "transport": "websocket", "modelId": "id",
        "wireModel": "wire", "maxPromptTokens": 6000, "azure": {"apiVersion": "2026-01-01"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({}, None),
        ({"COPILOT_PROVIDER_API_KEY": "k"}, "printenv COPILOT_PROVIDER_API_KEY"),
        ({"COPILOT_PROVIDER_API_KEY": "k", "COPILOT_PROVIDER_BEARER_TOKEN": "t"},
         "printenv COPILOT_PROVIDER_BEARER_TOKEN"),
        ({"COPILOT_PROVIDER_API_KEY": "k", "COPILOT_PROVIDER_API_KEY_COMMAND": "pass show x"},
         'sh -c "$COPILOT_PROVIDER_API_KEY_COMMAND"'),
    ],
)  # fmt: skip
def test_a_command_prints_the_key(environ: dict[str, str], command: str | None) -> None:
    provider = provider_of({"COPILOT_PROVIDER_BASE_URL": URL, **environ})
    assert provider is not None
    assert provider.get("apiKeyCommand") == command


def test_unsendable_secrets() -> None:
    assert unsendable_secrets({}) == unsendable_secrets(OWN) == ()
    assert unsendable_secrets({"COPILOT_PROVIDER_HEADERS": "X: y"}) == ()  # without a provider of the user
    assert unsendable_secrets(HEADERS) == ("COPILOT_PROVIDER_HEADERS",)
    token = {"COPILOT_PROVIDER_BEARER_TOKEN": "t"}
    assert unsendable_secrets({**OWN, **token}) == ()
    assert unsendable_secrets({**OWN, **token, "COPILOT_PROVIDER_TYPE": "anthropic"}) == (
        "COPILOT_PROVIDER_BEARER_TOKEN",
    )
    assert unsendable_secrets({"COPILOT_PROVIDER_BASE_URL": "https://me:pw@x/v1"}) == ("COPILOT_PROVIDER_BASE_URL",)


def test_the_model_of_the_environment() -> None:
    assert model_of({}) is None
    assert model_of({"COPILOT_PROVIDER_MODEL_ID": "id"}) == "id"
    assert model_of({"COPILOT_PROVIDER_MODEL_ID": "id", "COPILOT_MODEL": "m"}) == "m"


# -- the codec context


def test_approvals_and_questions_follow_the_options() -> None:
    assert context().approves_all
    assert not context().answers_questions
    assert not context(on_approval_request=print).approves_all
    assert not context(approval_mode="prompt").approves_all
    assert not context(approval_mode="deny").answers_questions
    for options in ({"approval_mode": "prompt"}, {"interactive": True}, {"on_input_required": print}):
        assert context(**options).answers_questions


def test_files_and_data_are_attached_and_links_are_not() -> None:
    attachments = [
        Attachment(file_path="/a/dot.png"),
        Attachment(base64="AA==", mime_type="image/png"),
        Attachment(url="https://x/y.png"),
    ]
    assert context(attachments=attachments).attachments == (
        {"type": "file", "path": "/a/dot.png", "displayName": "dot.png"},
        {"type": "blob", "data": "AA==", "mimeType": "image/png"},
    )
    assert context(attachments=attachments).images == ()
