"""Run options to pi's command line."""

from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux_adapters._dialects.pi.extension import FILE
from agent_mux_adapters.pi import ADAPTER

EXTENSION = ("--extension", f"/run/tmp/{FILE}")


def spawn(**options: Any) -> SpawnArgs:
    return ADAPTER.spawn(
        run_options(**options), SpawnEnvironment(executable="/bin/pi", temp_dir="/run/tmp", environ={})
    )


def run_options(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "pi", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def test_unattended_run_uses_json_mode_with_prompt_on_stdin() -> None:
    args = spawn(prompt="--version @x")
    assert args.argv == ("/bin/pi", "--print", "--mode", "json", *EXTENSION)
    assert (args.protocol, args.stdin_text) == ("json", "--version @x")


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"on_approval_request": print},
        {"on_input_required": print},
        {"attachments": [Attachment(base64="AA==", mime_type="image/png")]},
    ],
)
def test_options_beyond_json_mode_use_rpc_mode(options: dict[str, Any]) -> None:
    args = spawn(**options)
    assert args.argv[:3] == ("/bin/pi", "--mode", "rpc")
    assert (args.protocol, args.stdin_text) == ("rpc", None)


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"model": "fake/some-model"}, ("--model", "fake/some-model")),
        ({"thinking_effort": "high"}, ("--thinking", "high")),
        ({"session_id": "01a2"}, ("--session", "01a2")),
        ({"fork_session_id": "01a2"}, ("--fork", "01a2")),
        ({"no_session": True}, ("--no-session",)),
        ({"system_prompt": "be brief"}, ("--append-system-prompt", "/run/tmp/system-prompt.md")),
        (
            {"system_prompt": "be brief", "system_prompt_mode": "replace"},
            ("--system-prompt", "/run/tmp/system-prompt.md"),
        ),
    ],
)
def test_options_become_flags(options: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert spawn(**options).argv == ("/bin/pi", "--print", "--mode", "json", *flags, *EXTENSION)


def test_system_prompts_are_passed_by_file() -> None:
    args = spawn(system_prompt="secret", prompt="secret, too")
    assert "secret" not in str(args.argv)
    assert args.files["system-prompt.md"] == "secret"


def test_json_mode_takes_files_by_path() -> None:
    assert spawn(attachments=[Attachment(file_path="/a b.txt"), Attachment(file_path="/c.png")]).argv[-2:] == (
        "@/a b.txt",
        "@/c.png",
    )


def test_rpc_mode_sends_images_by_extension_and_mentions_other_files() -> None:
    options = run_options(
        interactive=True,
        attachments=[
            Attachment(file_path="/notes.txt"),
            Attachment(file_path="/c.PNG"),
            Attachment(file_path="/no-suffix", mime_type="image/webp"),
            Attachment(file_path="/not-an-image.png", mime_type="text/plain"),
            Attachment(base64="AA==", mime_type="image/gif"),
        ],
    )
    args = ADAPTER.spawn(options, SpawnEnvironment(executable="/bin/pi", temp_dir="/run/tmp", environ={}))
    context = ADAPTER.context(options, args)
    assert context.prompt == "do it\n\nAttached file: /notes.txt\nAttached file: /not-an-image.png"
    assert context.images == ("data:image/gif;base64,AA==",)
    shown = '[{"path": "/c.PNG", "mimeType": "image/png"}, {"path": "/no-suffix", "mimeType": "image/webp"}]'
    assert f"const IMAGES = {shown};" in args.files[FILE]


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ({"approval_mode": "yolo"}, "false"),
        ({"approval_mode": "prompt"}, "true"),
        ({"approval_mode": "deny"}, "true"),
        ({"approval_mode": "yolo", "on_approval_request": print}, "true"),
    ],
)
def test_extension_asks_unless_everything_is_allowed(options: dict[str, Any], asks: str) -> None:
    assert f"const ASKS = {asks};" in spawn(**options).files[FILE]


def test_with_policy_rules_read_only_tools_ask_too() -> None:
    assert 'new Set(["find", "grep", "ls", "read"])' in spawn(approval_mode="prompt").files[FILE]
    assert "new Set([])" in spawn(approval_mode="prompt", policy=Policy()).files[FILE]


def test_codec_sends_prompt_in_rpc_mode_only() -> None:
    for interactive, prompt in ((True, "do it"), (False, None)):
        options = run_options(interactive=interactive)
        assert ADAPTER.context(options, spawn(interactive=interactive)).prompt == prompt


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"temperature": 0.1}, "temperature"),
        ({"top_p": 0.1}, "top_p"),
        ({"top_k": 2}, "top_k"),
        ({"max_tokens": 2}, "max_tokens"),
        ({"thinking_budget_tokens": 2000}, "thinking_budget_tokens"),
        ({"thinking_effort": "max"}, "'max'"),
        ({"system_prompt": "x", "system_prompt_mode": "prepend"}, "appended"),
        ({"attachments": [Attachment(url="https://x/a.png")]}, "1 attachments"),
    ],
)
def test_unsupported_options_are_noted(options: dict[str, Any], word: str) -> None:
    [note] = spawn(**options).notes
    assert word in note


def test_supported_options_add_no_notes() -> None:
    assert spawn().notes == ()
