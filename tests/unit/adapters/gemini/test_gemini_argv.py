"""How Gemini CLI is started."""

from typing import Any

import pytest
from gemini_recordings import ACP, ADAPTER, STREAM_JSON
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.errors import CapabilityError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, check_capabilities
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import Attachment, McpServer, RunOptions

TRUST = "GEMINI_CLI_TRUST_WORKSPACE"
PNG = Attachment(base64="aGk=", mime_type="image/png")


def options_of(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "gemini", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def spawn(environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(executable="/bin/gemini", temp_dir="/run/tmp", environ=environ or {})
    return ADAPTER.spawn(options_of(**options), machine)


def context(**options: Any) -> CodecContext:
    assert ADAPTER.context is not None
    return ADAPTER.context(options_of(**options), spawn(**options))


def test_a_one_shot_run_takes_its_prompt_on_stdin() -> None:
    args = spawn(prompt="-n what\nis this")
    assert args.argv == ("/bin/gemini", "--output-format=stream-json", "--debug", "--approval-mode=yolo")
    assert (args.protocol, args.stdin_text, args.counts_turns) == (STREAM_JSON, "-n what\nis this", False)
    assert args.notes == ()


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"on_approval_request": print},
        {"mcp_servers": [McpServer("echo", command="echo")]},
        {"attachments": [PNG]},
    ],
)
def test_whatever_needs_two_sides_takes_acp(options: dict[str, Any]) -> None:
    args = spawn(**options)
    assert args.argv[:3] == ("/bin/gemini", "--acp", "--debug")
    assert (args.protocol, args.stdin_text, args.stdin) == (ACP, None, "pipe")
    assert context(**options).prompt == "do it"


def test_questions_need_no_acp_since_none_are_asked() -> None:
    assert spawn(on_input_required=print).protocol == STREAM_JSON


def test_the_codec_of_a_one_shot_run_sends_no_prompt() -> None:
    assert context().prompt is None


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"approval_mode": "yolo"}, "yolo"),
        ({"approval_mode": "yolo", "interactive": True}, "yolo"),
        ({"approval_mode": "yolo", "on_approval_request": print}, "default"),
        ({"approval_mode": "prompt"}, "default"),
        ({"approval_mode": "deny"}, "default"),
    ],
)
def test_agent_asks_when_approvals_are_requested(options: dict[str, Any], mode: str) -> None:
    assert f"--approval-mode={mode}" in spawn(**options).argv


def test_its_launcher_is_never_used_because_it_swallows_signals() -> None:
    assert spawn().env["GEMINI_CLI_NO_RELAUNCH"] == "true"
    assert spawn(interactive=True).env["GEMINI_CLI_NO_RELAUNCH"] == "true"


def test_directory_is_trusted_only_in_mode_yolo() -> None:
    assert spawn().env[TRUST] == "true"
    assert TRUST not in spawn(approval_mode="prompt").env
    assert TRUST not in spawn(on_approval_request=print).env
    assert any(TRUST in note for note in spawn(approval_mode="prompt").notes)


def test_trust_variable_of_the_environment_is_kept() -> None:
    environ = {TRUST: "false"}
    assert TRUST not in spawn(environ).env
    assert spawn(environ, approval_mode="prompt").notes == ()


def test_a_model_is_bound_to_its_flag() -> None:
    assert "--model=--yolo" in spawn(model="--yolo").argv


def test_a_session_is_named_on_the_command_line_in_both_protocols() -> None:
    one_shot, talk = spawn(session_id="s-1"), spawn(session_id="s-1", interactive=True)
    assert "--resume=s-1" in one_shot.argv
    assert "--resume=s-1" in talk.argv  # or the CLI would delete it as it starts
    assert len(talk.notes) == len(one_shot.notes) + 1


def test_a_system_prompt_that_replaces_is_a_file() -> None:
    args = spawn(system_prompt="Be a pirate.", system_prompt_mode="replace")
    assert args.env["GEMINI_SYSTEM_MD"] == "/run/tmp/system.md"
    assert args.files == {"system.md": "Be a pirate."}
    assert args.stdin_text == "do it"
    assert args.notes == ()


@pytest.mark.parametrize("mode", ["append", "prepend"])
def test_any_other_system_prompt_is_put_before_the_prompt(mode: Any) -> None:
    args = spawn(system_prompt="Be brief.", system_prompt_mode=mode)
    assert args.stdin_text == "Be brief.\n\ndo it"
    assert "GEMINI_SYSTEM_MD" not in args.env
    assert len(args.notes) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"top_k": 3},
        {"max_tokens": 9},
        {"max_output_tokens": 9},
        {"no_session": True},
    ],
)
def test_each_option_without_effect_is_noted_once(options: dict[str, Any]) -> None:
    assert len(spawn(**options).notes) == 1


@pytest.mark.parametrize(
    "options",
    [{"fork_session_id": "s"}, {"output_schema": {}}, {"thinking_effort": "high"}, {"thinking_budget_tokens": 2048}],
)
def test_unsupported_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError):
        check_capabilities(options_of(**options), ADAPTER.capabilities)


def test_secrets_of_mcp_servers_are_in_no_argument() -> None:
    server = McpServer("s", transport="sse", url="https://x/?key=hush", headers={"Authorization": "hush"})
    args = spawn(mcp_servers=[server])
    assert "hush" not in " ".join((*args.argv, *args.env.values(), *args.files.values()))


def test_an_image_goes_to_the_codec_as_a_data_url() -> None:
    assert context(attachments=[PNG]).images == ("data:image/png;base64,aGk=",)


@given(model=st.text(min_size=1), session=st.text(min_size=1), prompt=st.text(min_size=1))
def test_no_value_becomes_a_flag(model: str, session: str, prompt: str) -> None:
    args = spawn(model=model, session_id=session, prompt=prompt)
    flags = [arg.partition("=")[0] for arg in args.argv[1:]]
    assert flags == ["--output-format", "--debug", "--approval-mode", "--model", "--resume"]
