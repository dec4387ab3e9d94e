"""How Claude Code is started for which options."""

import json
from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux_adapters.claude import ADAPTER
from agent_mux_adapters.claude.argv import build_context, build_spawn_args

ONE_SHOT, TWO_WAY = "stream-json", "stream-json-two-way"


def spawn(*, is_root: bool = False, environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    options = {"prompt": "go", "approval_mode": "yolo", **options}
    environment = SpawnEnvironment(
        executable="/bin/claude", temp_dir="/tmp/run", environ=environ or {}, is_root=is_root
    )
    return build_spawn_args(RunOptions(agent="claude", **options), environment)


def test_a_one_shot_run_takes_its_prompt_on_stdin_never_in_argv() -> None:
    args = spawn(prompt="a secret plan")
    assert args.argv == (
        "/bin/claude", "-p", "--output-format=stream-json", "--verbose", "--include-partial-messages",
        "--permission-mode=bypassPermissions",
    )  # fmt: skip
    assert (args.protocol, args.stdin_text) == (ONE_SHOT, "a secret plan")
    assert "a secret plan" not in " ".join(args.argv)


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"approval_mode": "prompt"}, "default"),
        ({"approval_mode": "deny"}, "default"),
        ({"interactive": True}, "bypassPermissions"),
        ({"on_approval_request": print}, "default"),
        ({"on_input_required": print}, "bypassPermissions"),
        ({"is_root": True}, "default"),
    ],
)
def test_approvals_and_questions_need_the_two_way_protocol(options: dict[str, Any], mode: str) -> None:
    args = spawn(**options)
    assert (args.protocol, args.stdin_text, args.stdin) == (TWO_WAY, None, "pipe")
    assert {"--input-format=stream-json", "--permission-prompt-tool=stdio", f"--permission-mode={mode}"} <= {*args.argv}


def test_where_rules_decide_tools_that_only_read_ask_too() -> None:
    [settings] = [
        word for word in spawn(approval_mode="prompt", policy=Policy()).argv if word.startswith("--settings=")
    ]
    asking = json.loads(settings.partition("=")[2])["permissions"]["ask"]
    assert {"Read", "Grep", "Bash", "Write"} <= set(asking)
    assert not any(word.startswith("--settings") for word in spawn(approval_mode="prompt").argv)


def test_root_in_a_sandbox_may_bypass_permissions() -> None:
    assert spawn(is_root=True, environ={"IS_SANDBOX": "1"}).protocol == ONE_SHOT


def test_the_codec_gets_the_prompt_only_where_it_sends_it() -> None:
    def prompt(**options: Any) -> str | None:
        run = RunOptions(agent="claude", prompt="go", **options)
        return build_context(run, spawn(**options)).prompt

    assert prompt(approval_mode="yolo") is None
    assert prompt(approval_mode="prompt") == "go"


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"session_id": "abc"}, ["--resume=abc"]),
        ({"fork_session_id": "abc"}, ["--resume=abc", "--fork-session"]),
        ({"no_session": True}, ["--no-session-persistence"]),
        ({"model": "--evil"}, ["--model=--evil"]),
        ({"session_id": "--evil"}, ["--resume=--evil"]),
        ({"thinking_effort": "max"}, ["--effort=max"]),
        ({"max_turns": 3}, ["--max-turns=3"]),
        ({"output_schema": {"type": "object"}}, ['--json-schema={"type":"object"}']),
        ({"include_subagent_events": True}, ["--forward-subagent-text"]),
    ],
)
def test_options_become_flags_with_their_values_bound_to_them(options: dict[str, Any], flags: list[str]) -> None:
    assert list(spawn(**options).argv[6:]) == flags


@pytest.mark.parametrize(
    ("mode", "flag", "notes"), [("append", "append-", 0), ("prepend", "append-", 1), ("replace", "", 0)]
)
def test_a_system_prompt_goes_by_file(mode: str, flag: str, notes: int) -> None:
    args = spawn(system_prompt="be brief", system_prompt_mode=mode)
    assert args.argv[-1] == f"--{flag}system-prompt-file=/tmp/run/system-prompt.txt"
    assert args.files == {"system-prompt.txt": "be brief"}
    assert len(args.notes) == notes


def test_mcp_servers_go_by_file_because_they_hold_secrets() -> None:
    servers = [
        McpServer("a", command="/bin/a", args=("-x",), env={"TOKEN": "s3cret"}),
        McpServer("b", transport="streamable-http", url="http://b", headers={"Authorization": "s3cret"}),
        McpServer("c", transport="sse", url="http://c"),
    ]
    args = spawn(mcp_servers=servers)
    assert args.argv[-1] == "--mcp-config=/tmp/run/mcp.json"
    assert "s3cret" not in " ".join(args.argv)
    assert json.loads(args.files["mcp.json"])["mcpServers"] == {
        "a": {"type": "stdio", "command": "/bin/a", "args": ["-x"], "env": {"TOKEN": "s3cret"}},
        "b": {"type": "http", "url": "http://b", "headers": {"Authorization": "s3cret"}},
        "c": {"type": "sse", "url": "http://c", "headers": {}},
    }


def test_a_thinking_budget_wins_over_the_effort() -> None:
    args = spawn(thinking_budget_tokens=2048, thinking_effort="high")
    assert args.env["MAX_THINKING_TOKENS"] == "2048"
    assert not [flag for flag in args.argv if flag.startswith("--effort")]


def test_the_output_limit_goes_by_environment() -> None:
    assert spawn(max_tokens=10, max_output_tokens=20).env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "20"


def test_attached_files_are_mentioned_in_the_prompt() -> None:
    attachments = [Attachment(file_path="/a b.txt"), Attachment(file_path="/i.png")]
    assert spawn(attachments=attachments).stdin_text == 'go\n\n@"/a b.txt"\n@"/i.png"'


def test_unsupported_attachment_emits_a_note() -> None:
    attachments = [Attachment(url="http://x/i.png"), Attachment(file_path='/a".txt'), Attachment(file_path="/ok")]
    args = spawn(attachments=attachments)
    assert args.stdin_text == 'go\n\n@"/ok"'
    assert [note.split()[0] for note in args.notes] == ["2"]


def test_each_unsupported_option_emits_one_note() -> None:
    notes = spawn(temperature=0.5, top_p=0.5, top_k=3).notes
    assert len(notes) == 3
    assert all(note.endswith(".") for note in notes)


def test_variables_of_an_outer_session_are_unset() -> None:
    assert {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT*", "CLAUDE_CODE_SSE_PORT"} <= set(ADAPTER.session_variables)
