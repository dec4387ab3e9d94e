"""Run options to OpenCode's command line, environment and configuration."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux_adapters.opencode import ADAPTER
from agent_mux_adapters.opencode.argv import BRIDGE

CONFIG = "OPENCODE_CONFIG_CONTENT"
ONE_SHOT = {"approval_mode": "yolo", "stream": False}


def spawn(environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    settings = {"agent": "opencode", "prompt": "do it", "cwd": "/", **options}
    machine = SpawnEnvironment(executable="/bin/opencode", temp_dir="/run/tmp", environ=environ or {})
    return ADAPTER.spawn(RunOptions(**settings), machine)


def config(args: SpawnArgs) -> dict[str, Any]:
    """Return the configuration of this run."""
    return dict(json.loads(args.env.get(CONFIG, "{}")))


def test_run_without_streaming_uses_opencode_run_with_prompt_on_stdin() -> None:
    args = spawn(**ONE_SHOT, prompt="-n what\nis this")
    assert args.argv == ("/bin/opencode", "run", "--format=json", "--thinking", "--auto")
    assert (args.protocol, args.stdin_text) == ("run-json", "-n what\nis this")


@pytest.mark.parametrize(
    "options",
    [
        {"stream": "auto"},
        {"stream": True},
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"on_approval_request": print},
        {"on_input_required": print},
        {"no_session": True},
        {"output_schema": {"type": "object"}},
        {"attachments": [Attachment(url="https://x/a.png")]},
    ],
)
def test_other_runs_use_the_server_behind_the_bridge(options: dict[str, Any]) -> None:
    args = spawn(**{**ONE_SHOT, **options})
    assert args.argv == (sys.executable, "-I", "-S", str(BRIDGE), "/bin/opencode", "/")
    assert (args.protocol, args.stdin_text, args.stdin, args.counts_turns) == ("serve", None, "pipe", False)
    assert Path(BRIDGE).is_file()


def test_run_options_become_flags() -> None:
    args = spawn(**ONE_SHOT, model="--help", thinking_effort="high", fork_session_id="-c", system_prompt="be brief")
    assert args.argv[5:] == ("--model=--help", "--variant=high", "--session=-c", "--fork")
    assert args.files == {"instructions.md": "be brief"}
    assert config(args)["instructions"] == ["/run/tmp/instructions.md"]
    assert spawn(**ONE_SHOT, session_id="ses_1").argv[5:] == ("--session=ses_1",)


def test_questions_are_denied_where_they_cannot_be_answered() -> None:
    assert config(spawn(approval_mode="yolo"))["permission"] == {"question": "deny"}
    assert config(spawn(approval_mode="deny"))["permission"]["question"] == "deny"
    assert "question" not in config(spawn(approval_mode="prompt"))["permission"]
    assert config(spawn(approval_mode="yolo", on_input_required=print)) == {}


def test_prompt_mode_asks_before_changes() -> None:
    assert config(spawn(approval_mode="prompt"))["permission"] == {
        "bash": {"*": "ask"}, "edit": {"*": "ask"}, "webfetch": "ask", "websearch": "ask", "*_*": "ask",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "continues"),
    [
        ({"approval_mode": "prompt"}, True),
        ({"approval_mode": "deny"}, True),
        ({"approval_mode": "yolo", "policy": Policy()}, True),
        ({"approval_mode": "yolo"}, False),
    ],
)
def test_turn_continues_after_denials_where_calls_can_be_denied(options: dict[str, Any], continues: bool) -> None:
    settings = config(spawn(**options))
    assert ("experimental" in settings) == continues
    assert settings.get("experimental", {}).get("continue_loop_on_deny", False) == continues


def test_deny_mode_asks_for_everything() -> None:
    permission = config(spawn(approval_mode="deny"))["permission"]
    assert permission.pop("question") == "deny"
    assert set(permission.values()) == {"ask"}
    assert {"*", "bash", "edit", "read", "task"} <= set(permission)


def test_policy_rules_ask_for_everything() -> None:
    permission = config(spawn(approval_mode="prompt", policy=Policy()))["permission"]
    assert permission["read"] == permission["*"] == "ask"
    assert "question" not in permission


def test_inherited_configuration_is_kept() -> None:
    theirs = {"model": "a/b", "permission": {"bash": {"*": "allow", "git *": "allow"}}, "mcp": {"old": {}},
              "instructions": ["x.md"]}  # fmt: skip
    args = spawn(
        {CONFIG: json.dumps(theirs)},
        approval_mode="prompt",
        mcp_servers=[McpServer("new", command="serve", args=("-v",))],
    )
    merged = config(args)
    assert merged["model"] == "a/b"
    assert list(merged["permission"]["bash"].items()) == [("*", "ask"), ("git *", "allow")]
    assert merged["mcp"] == {
        "old": {},
        "new": {"type": "local", "command": ["serve", "-v"], "environment": {}, "enabled": True},
    }
    assert args.notes == ()


def test_unreadable_inherited_configuration_is_noted() -> None:
    [note] = spawn({CONFIG: "{// a comment\n}"}).notes
    assert "not plain JSON" in note


def test_mcp_secrets_are_in_the_environment_only() -> None:
    servers = [
        McpServer("one", command="run", env={"TOKEN": "s3cret"}),
        McpServer("two", transport="streamable-http", url="https://x/?k=s3cret", headers={"authorization": "s3cret"}),
    ]
    args = spawn(mcp_servers=servers)
    assert "s3cret" not in repr(args.argv)
    assert config(args)["mcp"]["one"]["environment"] == {"TOKEN": "s3cret"}
    assert config(args)["mcp"]["two"] == {
        "type": "remote", "url": "https://x/?k=s3cret", "headers": {"authorization": "s3cret"}, "enabled": True,
    }  # fmt: skip


def test_agent_settings_go_to_the_build_agent() -> None:
    args = spawn(temperature=0.5, top_p=0.25, system_prompt="You are x.", system_prompt_mode="replace", max_tokens=500)
    settings = config(args)
    assert settings["agent"] == {"build": {"prompt": "You are x.", "temperature": 0.5, "top_p": 0.25}}
    assert settings["default_agent"] == "build"
    assert args.env["OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX"] == "500"  # noqa: S105
    assert any("'build'" in note for note in args.notes)


def test_unsupported_options_are_noted() -> None:
    notes = spawn(
        top_k=3, thinking_budget_tokens=2000, thinking_effort="max", model="gpt",
        system_prompt="x", system_prompt_mode="prepend",
    ).notes  # fmt: skip
    for word in ("top_k", "thinking_budget_tokens", "variants", "prepend", "provider/model"):
        assert any(word in note for note in notes), word


def test_attachments_reach_the_codec_as_urls(tmp_path: Path) -> None:
    picture, notes = tmp_path / "a.png", tmp_path / "b.txt"
    picture.write_bytes(b"\x89PNG")
    notes.write_text("x")
    options = RunOptions(
        agent="opencode", prompt="x", attachments=[Attachment(file_path=str(picture)), Attachment(file_path=str(notes))]
    )
    assert ADAPTER.context is not None
    context = ADAPTER.context(options, spawn())
    assert context.images == ("data:image/png;base64,iVBORw==", notes.as_uri())
    assert context.prompt == "x"
