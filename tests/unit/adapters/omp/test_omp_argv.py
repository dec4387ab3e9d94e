"""Run options to omp's command line."""

import json
from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters._dialects.pi.extension import FILE
from agent_mux_adapters.omp import ADAPTER

JSON_MODE = ("/bin/omp", "--print", "--mode=json", "--no-title", "--approval-mode=yolo")
EXTENSION = f"--extension=/run/tmp/{FILE}"
ECHO = McpServer(name="echo", command="/bin/echo-server", args=("-v",), env={"TOKEN": "secret"})


def spawn(**options: Any) -> SpawnArgs:
    return ADAPTER.spawn(
        run_options(**options), SpawnEnvironment(executable="/bin/omp", temp_dir="/run/tmp", environ={})
    )


def run_options(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "omp", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def test_unattended_run_uses_json_mode_with_prompt_on_stdin() -> None:
    args = spawn(prompt="--version @x")
    assert args.argv == (*JSON_MODE, EXTENSION)
    assert (args.protocol, args.stdin_text) == ("json", "--version @x")


@pytest.mark.parametrize(
    ("options", "mode", "approvals"),
    [
        ({"interactive": True}, "rpc", "yolo"),
        ({"attachments": [Attachment(base64="AA==", mime_type="image/png")]}, "rpc", "yolo"),
        ({"approval_mode": "deny"}, "rpc", "always-ask"),
        ({"on_approval_request": print}, "rpc", "always-ask"),
        ({"approval_mode": "prompt"}, "rpc-ui", "always-ask"),
        ({"on_input_required": print}, "rpc-ui", "yolo"),
    ],
)
def test_options_beyond_json_mode_use_rpc_mode(options: dict[str, Any], mode: str, approvals: str) -> None:
    args = spawn(**options)
    assert args.argv[:4] == ("/bin/omp", f"--mode={mode}", "--no-title", f"--approval-mode={approvals}")
    assert (args.protocol, args.stdin_text) == ("rpc", None)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"model": "fake/some-model"}, "--model=fake/some-model"),
        ({"model": "--help"}, "--model=--help"),
        ({"thinking_effort": "max"}, "--thinking=max"),
        ({"session_id": "01a2"}, "--resume=01a2"),
        ({"fork_session_id": "01a2"}, "--fork=01a2"),
        ({"no_session": True}, "--no-session"),
        ({"system_prompt": "be brief"}, "--append-system-prompt=/run/tmp/system-prompt.md"),
        (
            {"system_prompt": "be brief", "system_prompt_mode": "replace"},
            "--system-prompt=/run/tmp/system-prompt.md",
        ),
    ],
)
def test_options_become_flags(options: dict[str, Any], flag: str) -> None:
    assert spawn(**options).argv == (*JSON_MODE, flag, EXTENSION)


def test_options_without_a_flag_go_into_a_run_configuration() -> None:
    args = spawn(temperature=0.5, top_p=0.25, top_k=3)
    assert "--config=/run/tmp/config.yml" in args.argv
    assert json.loads(args.files["config.yml"]) == {"temperature": 0.5, "topP": 0.25, "topK": 3}
    assert "config.yml" not in spawn().files


def test_thinking_budget_applies_to_every_level() -> None:
    args = spawn(thinking_budget_tokens=2000)
    assert "--thinking=high" in args.argv
    assert set(json.loads(args.files["config.yml"])["thinkingBudgets"].values()) == {2000}
    [note] = args.notes
    assert "thinking budget" in note


def test_mcp_servers_are_loaded_from_the_run_directory() -> None:
    web = McpServer(name="web", transport="streamable-http", url="https://x/mcp", headers={"Authorization": "secret"})
    events = McpServer(name="events", transport="sse", url="https://x/sse")
    args = spawn(mcp_servers=[ECHO, web, events])
    assert "--extension=/run/tmp" in args.argv
    assert "secret" not in str(args.argv)
    assert json.loads(args.files[".mcp.json"]) == {
        "mcpServers": {
            "echo": {"type": "stdio", "command": "/bin/echo-server", "args": ["-v"], "env": {"TOKEN": "secret"}},
            "web": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "secret"}},
            "events": {"type": "sse", "url": "https://x/sse", "headers": {}},
        }
    }


def test_with_mcp_servers_rpc_ui_is_not_used() -> None:
    args = spawn(mcp_servers=[ECHO], on_input_required=print)
    assert args.argv[1] == "--mode=rpc"
    [note] = args.notes
    assert "asks no questions" in note


def test_json_mode_takes_files_by_path_and_rpc_mode_mentions_them() -> None:
    files = [Attachment(file_path="/a b.txt"), Attachment(file_path="/c.png")]
    assert spawn(attachments=files).argv[-2:] == ("@/a b.txt", "@/c.png")
    options = run_options(interactive=True, attachments=[*files, Attachment(base64="AA==", mime_type="image/gif")])
    context = ADAPTER.context(options, spawn(interactive=True))
    assert context.prompt == "do it\n\nAttached file: /a b.txt\nAttached file: /c.png"
    assert context.images == ("data:image/gif;base64,AA==",)


def test_codec_sends_prompt_in_rpc_mode_only() -> None:
    for interactive, prompt in ((True, "do it"), (False, None)):
        options = run_options(interactive=interactive)
        assert ADAPTER.context(options, spawn(interactive=interactive)).prompt == prompt


def test_omp_asks_for_approval_itself() -> None:
    assert "const ASKS = false;" in spawn(approval_mode="prompt").files[FILE]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_output_tokens": 2}, "max_output_tokens"),
        ({"system_prompt": "x", "system_prompt_mode": "prepend"}, "appended"),
        ({"attachments": [Attachment(url="https://x/a.png")]}, "1 attachments"),
    ],
)
def test_unsupported_options_are_noted(options: dict[str, Any], word: str) -> None:
    [note] = spawn(**options).notes
    assert word in note
