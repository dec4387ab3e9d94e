"""Command line, environment and context of Codex runs."""

import json
import tomllib
from typing import Any

import pytest
from codex_recordings import ADAPTER, APP_SERVER, EXEC
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.errors import ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters.codex.argv import toml_list, toml_string, toml_table
from agent_mux_adapters.codex.requests import effort_of

BOUNDED = "--config=features.unbounded_connection_retries=false"


def spawn(environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    settings = {"agent": "codex", "prompt": "do it", "cwd": "/", **options}
    machine = SpawnEnvironment(executable="/bin/codex", temp_dir="/run/tmp", environ=environ or {})
    return ADAPTER.spawn(RunOptions(**settings), machine)


def config(args: SpawnArgs) -> dict[str, Any]:
    """Return the settings that Codex reads from the command line."""
    return tomllib.loads("\n".join(arg.removeprefix("--config=") for arg in args.argv if arg.startswith("--config=")))


def test_a_one_shot_run_is_codex_exec_with_its_prompt_on_stdin() -> None:
    args = spawn(approval_mode="yolo", prompt="-n what\nis this")
    assert args.argv == (
        *("/bin/codex", "exec", "--json", "--skip-git-repo-check"),
        *("--dangerously-bypass-approvals-and-sandbox", BOUNDED, "-"),
    )
    assert (args.protocol, args.stdin_text) == (EXEC, "-n what\nis this")


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"stream": True},
        {"on_approval_request": print},
        {"on_input_required": print},
        {"session_id": "s"},
        {"fork_session_id": "s"},
        {"system_prompt": "be brief"},
        {"attachments": [Attachment(url="https://x/a.png")]},
    ],
)
def test_options_that_exec_lacks_select_the_app_server(options: dict[str, Any]) -> None:
    args = spawn(**{"approval_mode": "yolo", **options})
    assert args.argv[:3] == ("/bin/codex", "app-server", BOUNDED)
    assert (args.protocol, args.stdin_text, args.stdin) == (APP_SERVER, None, "pipe")


def test_questions_are_enabled_when_the_consumer_can_answer() -> None:
    questions = "--config=features.default_mode_request_user_input=true"
    assert questions in spawn(approval_mode="prompt").argv
    assert questions in spawn(approval_mode="yolo", on_input_required=print).argv
    assert questions not in spawn(approval_mode="deny").argv
    assert questions not in spawn(approval_mode="yolo").argv


def test_exec_gets_the_options_as_flags() -> None:
    args = spawn(
        approval_mode="yolo",
        model="--help",
        thinking_effort="max",
        no_session=True,
        output_schema={"type": "object"},
        attachments=[Attachment(file_path="/a b.png"), Attachment(file_path="/notes.txt")],
    )
    assert set(args.argv) >= {
        *("--model=--help", "--ephemeral", "--image=/a b.png"),
        *("--output-schema=/run/tmp/output-schema.json", '--config=model_reasoning_effort="xhigh"'),
    }
    assert json.loads(args.files["output-schema.json"]) == {"type": "object"}
    assert args.notes == ("codex supports only images: 1 attachment(s) are not sent",)


def test_unsupported_options_are_noted() -> None:
    notes = spawn(
        temperature=0.5, top_p=0.5, top_k=3, max_tokens=9, thinking_budget_tokens=2000,
        system_prompt="x", system_prompt_mode="prepend",
    ).notes  # fmt: skip
    for word in ("temperature", "top_p", "top_k", "max_output_tokens", "thinking_budget_tokens", "prepend"):
        assert any(word in note for note in notes), word


def test_a_key_that_the_app_server_does_not_read_is_noted() -> None:
    keyed = {"CODEX_API_KEY": "sk-secret"}
    [note] = spawn(keyed).notes
    assert "codex login" in note
    assert "sk-secret" not in note
    assert spawn(keyed, approval_mode="yolo").notes == ()


@pytest.mark.parametrize(
    ("level", "model", "effort"),
    [
        (None, None, None),
        ("low", "gpt-5.5", "low"),
        ("max", None, "xhigh"),
        ("max", "gpt-5.5", "xhigh"),
        ("max", "gpt-5.6-sol", "max"),
        ("max", "gpt-6.1-sol", "max"),
    ],
)
def test_the_highest_effort_is_the_highest_the_model_has(
    level: str | None, model: str | None, effort: str | None
) -> None:
    assert effort_of(level, model) == effort


def test_the_codec_context_has_what_argv_lacks() -> None:
    options = RunOptions(
        agent="codex",
        prompt=["one", "two"],
        cwd="/",
        attachments=[
            Attachment(file_path="/a.png"),
            Attachment(url="https://x/b"),
            Attachment(base64="AA==", mime_type="image/webp"),
            Attachment(base64="AA==", mime_type="application/pdf"),
        ],
        output_schema={"type": "object"},
    )
    args = ADAPTER.spawn(options, SpawnEnvironment(executable="codex", temp_dir="/t", environ={}))
    context = ADAPTER.context(options, args)
    assert context.prompt == "one\n\ntwo"
    assert context.images == ("/a.png", "https://x/b", "data:image/webp;base64,AA==")
    assert context.output_schema == {"type": "object"}
    quick = RunOptions(agent="codex", prompt="x", cwd="/", approval_mode="yolo")
    one_shot = ADAPTER.spawn(quick, SpawnEnvironment(executable="codex", temp_dir="/t", environ={}))
    assert ADAPTER.context(quick, one_shot).prompt is None


# -- MCP servers


def test_an_mcp_servers_secrets_are_in_the_environment_and_not_in_the_arguments() -> None:
    server = McpServer("db", command="db-mcp", args=("--port", "1"), env={"DB_KEY": "s3cret", "HOME": "/srv"})
    args = spawn({"HOME": "/home/dev"}, mcp_servers=[server])
    assert not any("s3cret" in arg or "/srv" in arg for arg in args.argv)
    assert args.env == {"DB_KEY": "s3cret", "AMUX_MCP_0_HOME": "/srv"}  # Codex keeps its own HOME
    settings = config(args)["mcp_servers"]["db"]
    assert settings["env_vars"] == ["DB_KEY", "AMUX_MCP_0_HOME"]
    assert (settings["command"], settings["args"][2:]) == ("/bin/sh", ["db-mcp", "--port", "1"])
    assert settings["args"][1] == 'export HOME="$AMUX_MCP_0_HOME"; unset AMUX_MCP_0_HOME; exec "$0" "$@"'


def test_a_server_without_colliding_variables_is_started_directly() -> None:
    settings = config(spawn({"A": "1"}, mcp_servers=[McpServer("s", command="x", env={"A": "1", "B": "2"})]))
    assert settings["mcp_servers"]["s"] == {"command": "x", "args": [], "env_vars": ["A", "B"]}
    plain = config(spawn(mcp_servers=[McpServer("s", command="x")]))
    assert plain["mcp_servers"]["s"] == {"command": "x", "args": []}


def test_two_servers_can_have_one_variable_with_different_values() -> None:
    servers = [McpServer(name, command="x", env={"KEY": name}) for name in ("one", "two")]
    args = spawn(mcp_servers=servers)
    assert args.env == {"KEY": "one", "AMUX_MCP_1_KEY": "two"}


def test_a_servers_variable_never_becomes_codexs_own() -> None:
    args = spawn(mcp_servers=[McpServer("s", command="x", env={"OPENAI_API_KEY": "k", "CODEX_HOME": "/h"})])
    assert set(args.env) == {"AMUX_MCP_0_OPENAI_API_KEY", "AMUX_MCP_0_CODEX_HOME"}


def test_a_variable_that_is_no_name_is_refused_because_a_shell_would_read_it() -> None:
    with pytest.raises(ValidationError, match=r"mcp_servers\[0\].env"):
        spawn(mcp_servers=[McpServer("s", command="x", env={"A; rm -rf": "1"})])


def test_the_headers_of_an_http_server_are_secrets_too() -> None:
    server = McpServer("web", transport="streamable-http", url="https://x/mcp", headers={"Authorization": "Bearer k"})
    args = spawn(mcp_servers=[server])
    assert config(args)["mcp_servers"]["web"] == {
        "url": "https://x/mcp",
        "env_http_headers": {"Authorization": "AMUX_MCP_0_HEADER_0"},
    }
    assert args.env == {"AMUX_MCP_0_HEADER_0": "Bearer k"}
    assert args.notes == ()


def test_a_transport_that_codex_does_not_have_is_noted() -> None:
    [note] = spawn(mcp_servers=[McpServer("old", transport="sse", url="https://x/sse")]).notes
    assert "old" in note


# -- TOML

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT)
def test_any_text_comes_back_from_toml(text: str) -> None:
    assert tomllib.loads(f"x = {toml_string(text)}") == {"x": text}


@given(st.lists(TEXT, max_size=3), st.dictionaries(TEXT, TEXT, max_size=3))
def test_any_list_and_table_come_back_from_toml(texts: list[str], table: dict[str, str]) -> None:
    assert tomllib.loads(f"x = {toml_list(texts)}\ny = {toml_table(table)}") == {"x": texts, "y": table}


def test_an_unpaired_surrogate_is_replaced() -> None:
    assert tomllib.loads(f"x = {toml_string(chr(0xD800))}") == {"x": "?"}
