"""Command lines, files and contexts of Qwen Code."""

from typing import Any

import pytest
from amux_qwen import ADAPTER

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import Attachment, McpServer, RunOptions

IMAGE = Attachment(base64="aGk=", mime_type="image/png")
SERVER = McpServer("files", command="serve", args=("--all",), env={"TOKEN": "secret"})


def options_of(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "qwen", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def spawn(**options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(executable="/bin/qwen", temp_dir="/run/tmp", environ={})
    return ADAPTER.spawn(options_of(**options), machine)


def context(**options: Any) -> CodecContext:
    assert ADAPTER.context is not None
    return ADAPTER.context(options_of(**options), spawn(**options))


def test_the_prompt_goes_to_stdin() -> None:
    args = spawn(prompt="--help")
    assert args.argv[1:] == ("--output-format=stream-json", "--include-partial-messages", "--approval-mode=yolo")
    assert (args.protocol, args.stdin_text) == ("stream-json", "--help")
    assert context(prompt="--help").prompt is None


@pytest.mark.parametrize(
    "options",
    [
        {"interactive": True},
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"on_approval_request": lambda _: None},
        {"thinking_effort": "low"},
    ],
)
def test_interactions_select_two_way(options: dict[str, Any]) -> None:
    args = spawn(**options)
    assert "--input-format=stream-json" in args.argv
    assert (args.protocol, args.stdin_text) == ("stream-json-two-way", None)
    assert context(**options).prompt == "do it"


def test_only_yolo_disables_approvals() -> None:
    assert "--approval-mode=yolo" in spawn().argv
    assert "--approval-mode=default" in spawn(approval_mode="deny").argv
    assert "--approval-mode=default" in spawn(on_approval_request=lambda _: None).argv


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"session_id": "-x"}, "--resume=-x"),
        ({"fork_session_id": "s"}, "--fork-session"),
        ({"model": "--help"}, "--model=--help"),
        ({"no_session": True}, "--chat-recording=false"),
        ({"max_model_calls": 3}, "--max-session-turns=3"),
        ({"system_prompt": "--brief"}, "--append-system-prompt=--brief"),
        ({"system_prompt": "brief", "system_prompt_mode": "replace"}, "--system-prompt=brief"),
        ({"output_schema": {"type": "object"}}, "--json-schema=@/run/tmp/schema.json"),
        ({"mcp_servers": [SERVER]}, "--mcp-config=/run/tmp/mcp.json"),
    ],
)
def test_values_are_bound_to_their_flags(options: dict[str, Any], flag: str) -> None:
    assert flag in spawn(**options).argv
    assert spawn(**options).notes == ()


def test_secrets_stay_out_of_the_command_line() -> None:
    args = spawn(mcp_servers=[SERVER])
    assert "secret" not in " ".join(args.argv)
    assert '"TOKEN":"secret"' in args.files["mcp.json"]


def test_images_select_acp() -> None:
    args = spawn(attachments=[IMAGE], session_id="s", mcp_servers=[SERVER])
    assert args.argv[1:] == ("--acp", "--approval-mode=yolo")
    assert (args.protocol, args.files, args.notes) == ("acp", {}, ())
    codec_context = context(attachments=[IMAGE], session_id="s", mcp_servers=[SERVER])
    assert (codec_context.images, codec_context.session_id) == (("data:image/png;base64,aGk=",), "s")
    assert [server.name for server in codec_context.mcp_servers] == ["files"]


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.5},
        {"max_output_tokens": 100},
        {"system_prompt": "brief", "system_prompt_mode": "prepend"},
        {"attachments": [IMAGE], "output_schema": {"type": "object"}},
        {"attachments": [IMAGE], "thinking_effort": "low"},
    ],
)
def test_unsupported_options_add_a_note(options: dict[str, Any]) -> None:
    [note] = spawn(**options).notes
    assert note.startswith("qwen ")
