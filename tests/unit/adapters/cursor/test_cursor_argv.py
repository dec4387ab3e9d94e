"""How cursor-agent is started."""

from typing import Any

import pytest

from agent_mux.errors import CapabilityError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, check_capabilities, default_context
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters.cursor import ADAPTER

COMMON = ("/bin/cursor-agent", "--print", "--output-format=stream-json")


def options_of(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "cursor", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def spawn(**options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(executable="/bin/cursor-agent", temp_dir="/run/tmp", environ={})
    return ADAPTER.spawn(options_of(**options), machine)


def test_the_prompt_goes_to_stdin() -> None:
    args = spawn(prompt="--help\nme")
    assert args.argv == (*COMMON, "--stream-partial-output", "--force")
    assert (args.stdin_text, args.protocol) == ("--help\nme", "stream-json")
    assert default_context("cursor", options_of(), args).prompt is None


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"session_id": "-x"}, "--resume=-x"),
        ({"model": "--help"}, "--model=--help"),
    ],
)
def test_values_are_bound_to_their_flags(options: dict[str, Any], flag: str) -> None:
    assert flag in spawn(**options).argv
    assert spawn(**options).notes == ()


def test_without_yolo_nothing_is_forced() -> None:
    assert "--force" not in spawn(approval_mode="deny").argv


def test_whole_messages_are_requested_without_streaming() -> None:
    assert "--stream-partial-output" not in spawn(stream=False).argv


def test_system_prompt_and_attachments_go_into_the_prompt() -> None:
    args = spawn(system_prompt="be brief", attachments=[Attachment(file_path="/a.png"), Attachment(url="https://x/b")])
    assert args.stdin_text == "be brief\n\ndo it\n\nAttached file: /a.png"
    assert any("system prompt" in note for note in args.notes)
    assert any("1 of the attachments" in note for note in args.notes)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"top_k": 2},
        {"max_tokens": 100},
        {"no_session": True},
        {"on_approval_request": print},
        {"on_input_required": print},
    ],
)
def test_each_unsupported_option_emits_one_note(options: dict[str, Any]) -> None:
    assert len(spawn(**options).notes) == 1


def test_model_calls_are_counted_by_the_mux() -> None:
    assert not spawn(max_model_calls=3).counts_turns


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"fork_session_id": "s"},
        {"interactive": True},
        {"thinking_effort": "high"},
        {"output_schema": {"type": "object"}},
        {"mcp_servers": [McpServer("s", command="x")]},
    ],
)
def test_unsupported_options_are_refused_before_the_start(options: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError):
        check_capabilities(options_of(**options), ADAPTER.capabilities)
