"""Command line and configuration of an OpenClaw run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openclaw_transcript import ACP, ADAPTER, EXEC

from agent_mux.errors import CapabilityError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, check_capabilities
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import Attachment, McpServer, RunOptions

PNG = Attachment(base64="aGk=", mime_type="image/png")
ECHO = McpServer("echo", command="echo", args=("-n", "${HOME}"), env={"TOKEN": "geheim"})
HOME = {"HOME": "/home/dev"}


def options_of(**options: Any) -> RunOptions:
    return RunOptions(**{"agent": "openclaw", "prompt": "do it", "cwd": "/", "approval_mode": "yolo", **options})


def spawn(environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    machine = SpawnEnvironment(executable="/bin/openclaw", temp_dir="/run/tmp", environ=environ or HOME)
    return ADAPTER.spawn(options_of(**options), machine)


def context(**options: Any) -> CodecContext:
    assert ADAPTER.context is not None
    return ADAPTER.context(options_of(**options), spawn(**options))


def config(**options: Any) -> Any:
    return json.loads(spawn(**options).files["run.json"])


# -- which way


def test_a_prompt_without_requests_uses_agent_exec_and_stdin() -> None:
    args = spawn(prompt="-n what\nis this")
    head = ("/bin/openclaw", "agent", "exec", "--json", "--message-file=-", "--cwd=/", "--timeout=0")
    assert args.argv == head
    assert (args.protocol, args.stdin_text, args.notes) == (EXEC, "-n what\nis this", ())


@pytest.mark.parametrize(
    "options",
    [
        {"approval_mode": "prompt"},
        {"approval_mode": "deny"},
        {"interactive": True},
        {"stream": True},
        {"on_approval_request": print},
        {"on_input_required": print},
        {"hooks": {"post_tool_use": print}},
        {"session_id": "s-1"},
        {"session_name": "nightly"},
        {"mcp_servers": [ECHO]},
        {"attachments": [PNG]},
        {"temperature": 0.5},
        {"max_tokens": 100},
        {"max_model_calls": 3},
        {"thinking_effort": "max"},
    ],
)
def test_whatever_agent_exec_cannot_do_takes_acp(options: dict[str, Any]) -> None:
    args = spawn(**options)
    assert (args.protocol, args.stdin, args.stdin_text) == (ACP, "pipe", None)
    assert args.argv[0] == sys.executable
    assert "--openclaw=/bin/openclaw" in args.argv
    assert context(**options).prompt == "do it"


def test_agent_exec_leaves_its_state_where_the_mux_takes_it_away() -> None:
    assert spawn().env == {"TMPDIR": "/run/tmp"}


def test_the_codec_of_agent_exec_sends_no_prompt() -> None:
    assert context().prompt is None


def test_the_launcher_is_a_program_that_is_there() -> None:
    argv = spawn(stream=True).argv
    assert (Path(argv[4]) / "launching" / "__main__.py").is_file()


def test_model_and_effort_are_bound_to_their_flags() -> None:
    argv = spawn(model="--json", thinking_effort="low").argv
    assert argv[-2:] == ("--model=--json", "--thinking=low")


@given(value=st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_no_value_of_an_option_ever_becomes_an_argument_of_its_own(value: str) -> None:
    for more in ({}, {"stream": True}):
        args = spawn(prompt=value, model=value, system_prompt=value, **more)
        known = {*spawn(prompt="x", **more).argv, f"--model={value}"}
        assert set(args.argv) <= known


# -- the configuration of a run


def test_a_run_has_a_workspace_and_leaves_no_files_of_its_own_there() -> None:
    assert config(stream=True)["agents"] == {"defaults": {"skipBootstrap": True, "workspace": "/"}}


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"approval_mode": "yolo", "stream": True}, "full"),
        ({"approval_mode": "yolo", "on_approval_request": print}, "ask"),
        ({"approval_mode": "prompt"}, "ask"),
        ({"approval_mode": "deny"}, "ask"),
    ],
)
def test_openclaw_asks_about_commands_when_a_consumer_can_answer(options: dict[str, Any], level: str) -> None:
    assert config(**options)["tools"]["exec"] == {"mode": level}


def test_tools_that_wait_for_a_person_are_denied() -> None:
    assert config(approval_mode="prompt")["tools"]["deny"] == ["ask_user"]


def test_in_mode_deny_there_are_no_tools_that_change_files_since_it_would_not_ask() -> None:
    assert config(approval_mode="deny")["tools"]["deny"] == ["ask_user", "apply_patch", "edit", "write"]
    assert any("without the tools that change files" in note for note in spawn(approval_mode="deny").notes)


def test_a_note_states_that_file_tools_work_unasked() -> None:
    assert any("commands only" in note for note in spawn(approval_mode="prompt").notes)


def test_model_and_sampling_are_in_the_configuration_of_an_acp_run() -> None:
    agent = config(stream=True, model="a/b", temperature=0.5, max_tokens=5, max_output_tokens=7)["agents"]["defaults"]
    assert agent["model"] == {"primary": "a/b"}
    assert agent["params"] == {"temperature": 0.5, "maxTokens": 7}


def test_mcp_servers_are_in_the_configuration_of_the_run_and_their_secrets_not_in_argv() -> None:
    remote = McpServer("far", transport="streamable-http", url="https://x", headers={"A": "B"})
    servers = config(mcp_servers=[ECHO, remote])["mcp"]["servers"]
    assert servers["echo"] == {"command": "echo", "args": ["-n", "$${HOME}"], "env": {"TOKEN": "geheim"}}
    assert servers["far"] == {"url": "https://x", "transport": "streamable-http", "headers": {"A": "B"}}
    assert "geheim" not in str(spawn(mcp_servers=[ECHO]).argv)
    assert context(mcp_servers=[ECHO]).mcp_servers == ()  # the bridge would refuse them


def test_the_gateway_of_a_run_has_its_own_token() -> None:
    gateway = config(stream=True)["gateway"]
    assert gateway["auth"] == {"mode": "token", "token": "${OPENCLAW_GATEWAY_TOKEN}"}
    assert gateway["controlUi"] == {"enabled": False}


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        (HOME, "/home/dev/.openclaw/openclaw.json"),
        ({**HOME, "OPENCLAW_HOME": "/oc"}, "/oc/.openclaw/openclaw.json"),
        ({**HOME, "OPENCLAW_STATE_DIR": "/state"}, "/state/openclaw.json"),
        ({**HOME, "OPENCLAW_STATE_DIR": "~/state"}, "/home/dev/state/openclaw.json"),
        ({**HOME, "OPENCLAW_STATE_DIR": "/state", "OPENCLAW_CONFIG_PATH": "~/a.json"}, "/home/dev/a.json"),
    ],
)
def test_the_users_own_configuration_is_found(environ: dict[str, str], path: str) -> None:
    assert f"--users-config={path}" in spawn(environ, stream=True).argv


def test_a_run_without_a_session_has_a_state_of_its_own() -> None:
    args = spawn(stream=True, no_session=True)
    assert "--state-dir=/run/tmp/state" in args.argv
    assert any("keys" in note for note in args.notes)
    assert spawn(no_session=True).notes == ()  # agent exec never keeps one


# -- what it cannot do


def test_a_system_prompt_is_put_before_the_prompt() -> None:
    args = spawn(system_prompt="Be brief.")
    assert args.stdin_text == "Be brief.\n\ndo it"
    assert any("system_prompt" in note for note in args.notes)


@pytest.mark.parametrize("option", [{"top_p": 0.5}, {"top_k": 3}, {"thinking_budget_tokens": 2048}])
def test_options_without_a_setting_are_noted(option: dict[str, Any]) -> None:
    (name,) = option
    assert spawn(**option).notes == (f"openclaw has no setting for {name}: ignored",)


@pytest.mark.parametrize("options", [{"fork_session_id": "s"}, {"output_schema": {"type": "object"}}])
def test_what_it_cannot_do_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError):
        check_capabilities(options_of(**options), ADAPTER.capabilities)
