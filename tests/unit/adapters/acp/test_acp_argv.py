"""Run options to the command of an ACP agent and to the codec context."""

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import PROJECT

from agent_mux.errors import AgentMuxError
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux_adapters._dialects.acp import OpenedSession
from agent_mux_adapters.acp import ADAPTER
from agent_mux_adapters.acp.quirks import settings


def spawn(**options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(
        executable="/bin/agent", arguments=("--acp", "-x y"), temp_dir="/run/tmp", environ={"HOME": "/home/dev"}
    )
    return ADAPTER.spawn(RunOptions(**{"agent": "acp", "prompt": "do it", "cwd": "/", **options}), machine)


def test_run_command_is_spawned_and_options_go_into_the_protocol() -> None:
    args = spawn(prompt="secret plan", model="m", thinking_effort="low")
    assert args.argv == ("/bin/agent", "--acp", "-x y")
    assert (args.protocol, args.stdin, args.stdin_text, args.notes) == ("acp", "pipe", None, ())
    assert not args.counts_turns


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"top_p": 0.5}, "top_p"),
        ({"top_k": 5}, "top_k"),
        ({"max_tokens": 5}, "max_output_tokens"),
        ({"thinking_budget_tokens": 2000}, "thinking_budget_tokens"),
        ({"no_session": True}, "no_session"),
        ({"system_prompt": "be brief"}, "system prompt"),
        ({"approval_mode": "deny"}, "denied"),
    ],
)
def test_unsupported_options_emit_notes(options: Any, word: str) -> None:
    [note] = spawn(**options).notes
    assert word in note


def test_run_without_command_is_refused() -> None:
    with pytest.raises(AgentMuxError) as caught:
        find_executable(ADAPTER, {"PATH": "/nowhere"})
    assert caught.value.code == "VALIDATION_ERROR"


def test_attachments_are_read_for_the_codec(tmp_path: Path) -> None:
    image, notes = tmp_path / "a.png", tmp_path / "b c.txt"
    image.write_bytes(b"\x89PNG")
    notes.write_text("x")
    attachments = [
        Attachment(file_path=str(image)),
        Attachment(file_path=str(notes)),
        Attachment(base64="AAAA", mime_type="image/gif"),
        Attachment(url="https://x/a.png"),
    ]
    options = RunOptions(agent="acp", prompt="look", cwd=PROJECT, attachments=attachments)
    assert ADAPTER.context is not None
    assert ADAPTER.context(options, spawn()).images == (
        f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}",
        notes.as_uri(),
        "data:image/gif;base64,AAAA",
        "https://x/a.png",
    )


@pytest.mark.parametrize(
    ("approval_mode", "current", "offered", "expected"),
    [
        ("yolo", "default", ["default", "yolo"], "yolo"),
        ("yolo", "yolo", ["default", "yolo"], None),
        ("yolo", "ask", ["ask", "code"], None),
        ("prompt", "auto", ["plan", "default", "auto"], "default"),
        ("deny", "accept-edits", ["ask", "accept-edits"], "ask"),
        ("prompt", "plan", ["plan", "default"], None),
        ("prompt", "default", ["default", "yolo"], None),
    ],
)
def test_modes_are_selected_by_common_names(
    approval_mode: Any, current: str, offered: list[str], expected: str | None
) -> None:
    modes = {"currentModeId": current, "availableModes": [{"id": name} for name in offered]}
    opened = OpenedSession(session_id="s", result={"modes": modes})
    options = RunOptions(agent="acp", prompt="x", cwd="/", approval_mode=approval_mode)
    assert ADAPTER.context is not None
    asked = settings(ADAPTER.context(options, spawn()), opened)
    assert [request.params["modeId"] for request in asked] == ([] if expected is None else [expected])


def test_acp_lines_are_recognized() -> None:
    sniff = ADAPTER.protocols["acp"].sniff
    assert sniff({"jsonrpc": "2.0", "method": "session/update", "params": {}})
    assert sniff({"jsonrpc": "2.0", "id": 1, "result": {"agentCapabilities": {}}})
    assert not sniff({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert not sniff({"method": "session/update"})
    assert not sniff({"type": "system"})
