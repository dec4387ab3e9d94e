"""Command line, environment and settings of a Hermes run."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters.hermes import ADAPTER, argv
from agent_mux_adapters.hermes.argv import ACP, APPROVAL_TIMEOUT, SETTINGS_FILE
from agent_mux_adapters.hermes.gateway_codec import GATEWAY
from agent_mux_adapters.hermes.paths import interpreter_in, python_beside

ECHO = McpServer("echo", command="/bin/echo", args=("a b",), env={"KEY": "secret-1"})


@pytest.fixture(autouse=True)
def no_administrator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(argv, "MANAGED_DIRECTORY", tmp_path / "etc-hermes")


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A `hermes` program as pip writes it."""
    path = tmp_path / "bin" / "hermes"
    path.parent.mkdir()
    path.write_text("#!/opt/venv/bin/python3.11\nfrom hermes_cli.main import main\n")
    return str(path)


def spawn(program: str, environ: dict[str, str] | None = None, **options: Any) -> SpawnArgs:
    settings = {"agent": "hermes", "prompt": "do it", "cwd": "/", **options}
    machine = SpawnEnvironment(executable=program, temp_dir="/run/tmp", environ=environ or {})
    return ADAPTER.spawn(RunOptions(**settings), machine)


def settings_of(args: SpawnArgs) -> dict[str, Any]:
    return dict(json.loads(args.files[SETTINGS_FILE]))


# -- the program


def test_a_run_works_with_the_profile_that_was_chosen(program: str, tmp_path: Path) -> None:
    directory = tmp_path / ".hermes"
    directory.mkdir()
    assert "HERMES_HOME" not in spawn(program, {"HOME": str(tmp_path)}).env
    (directory / "active_profile").write_text("coder\n")  # `hermes profile use coder`
    assert spawn(program, {"HOME": str(tmp_path)}).env["HERMES_HOME"] == str(directory / "profiles" / "coder")


def test_the_gateway_is_started_with_the_python_of_the_installation(program: str) -> None:
    args = spawn(program)
    assert args.argv == ("/opt/venv/bin/python3.11", "-P", "-m", "tui_gateway.entry")
    assert (args.protocol, args.stdin, args.stdin_text, args.counts_turns) == (GATEWAY, "pipe", None, True)


def test_nothing_of_the_run_is_in_argv(program: str) -> None:
    args = spawn(program, prompt="secret-2", system_prompt="secret-3", model="--help", mcp_servers=[ECHO])
    assert len(args.argv) == 4


def test_without_its_python_hermes_runs_over_acp(tmp_path: Path) -> None:
    path = tmp_path / "hermes"
    path.write_bytes(b"\x7fELF")
    args = spawn(str(path), max_model_calls=3)
    assert (args.argv, args.protocol, args.counts_turns) == ((str(path), "acp"), ACP, False)
    assert "reports less" in args.notes[0]


def test_over_acp_too_the_run_has_settings_of_its_own() -> None:
    options = {"system_prompt": "Be brief.", "mcp_servers": [ECHO], "thinking_effort": "low", "max_tokens": 5}
    args = spawn("/nowhere/hermes", approval_mode="deny", **options)
    settings = settings_of(args)
    assert settings.pop("approvals")["deny"] == ["*"]
    assert settings == {"agent": {"reasoning_effort": "low"}, "model": {"max_tokens": 5}}  # the rest is sent
    assert args.env["HERMES_MANAGED_DIR"] == "/run/tmp"


def test_over_acp_too_an_administrators_settings_stay() -> None:
    args = spawn("/nowhere/hermes", {"HERMES_MANAGED_DIR": "/etc/h"}, approval_mode="deny", mcp_servers=[ECHO])
    assert (args.files, "HERMES_MANAGED_DIR" in args.env) == ({}, False)
    assert any(note.endswith("not changed: approval_mode.") for note in args.notes)


def test_a_missing_program_does_not_raise() -> None:
    assert spawn("/nowhere/hermes").protocol == ACP


@pytest.mark.parametrize(
    ("script", "python"),
    [
        (b"#!/opt/v/bin/python3.11\nimport re", "/opt/v/bin/python3.11"),
        (b"#! /opt/v/bin/python\r\n", "/opt/v/bin/python"),
        (b"#!/bin/sh\n'''exec' '/a b/bin/python3' \"$0\" \"$@\"\n' '''", "/a b/bin/python3"),
        (b'#!/bin/sh\n\'\'\'exec\' "/a b/bin/python3" "$0" "$@"\n', "/a b/bin/python3"),
        (b"#!/bin/sh\n'''exec' /a/bin/python3 \"$0\" \"$@\"\n", "/a/bin/python3"),
        (b"#!/usr/bin/env python3\n", None),  # any Python, not the one it is installed in
        (b"#!/bin/sh\nexec /opt/v/bin/hermes\n", None),
        (b"#!/bin/sh\n'''exec' '/bin/rm' \"$0\"\n", None),
        (b"", None),
    ],
)
def test_a_script_names_its_interpreter(script: bytes, python: str | None) -> None:
    assert interpreter_in(script) == python


def test_a_virtual_environment_has_its_python_beside_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "hermes").write_text("#!/bin/sh\n")
    (folder / "python3").touch()
    link = tmp_path / "hermes"
    link.symlink_to(folder / "hermes")
    assert python_beside(str(link)) is None
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert python_beside(str(link)) == str(folder / "python3")


# -- permissions


def test_yolo_asks_for_no_permission(program: str) -> None:
    args = spawn(program, approval_mode="yolo")
    assert args.env["HERMES_YOLO_MODE"] == "1"
    assert "HERMES_WRITE_SAFE_ROOT" not in args.env


def test_yolo_with_a_callback_asks_it(program: str) -> None:
    args = spawn(program, approval_mode="yolo", on_approval_request=print)
    assert "HERMES_YOLO_MODE" not in args.env
    assert "HERMES_YOLO_MODE" in args.unset_env


def test_prompt_asks_a_person_who_has_time(program: str) -> None:
    args = spawn(program, {"HERMES_YOLO_MODE": "1"}, approval_mode="prompt")
    assert settings_of(args)["approvals"] == {"mode": "manual", "timeout": APPROVAL_TIMEOUT}
    assert "HERMES_YOLO_MODE" in args.unset_env


def test_deny_lets_nothing_run_and_nothing_be_written(program: str) -> None:
    args = spawn(program, approval_mode="deny")
    assert settings_of(args)["approvals"]["deny"] == ["*"]
    assert args.env["HERMES_WRITE_SAFE_ROOT"] == "/run/tmp/nowhere"
    assert any("'deny'" in note for note in args.notes)


# -- settings of this run only


def test_settings_lie_over_the_users_own_for_this_run(program: str) -> None:
    args = spawn(
        program, system_prompt="Be brief.", thinking_effort="low", max_tokens=500, max_model_calls=7, mcp_servers=[ECHO]
    )
    assert args.env["HERMES_MANAGED_DIR"] == "/run/tmp"
    assert args.env["HERMES_TUI_MAX_TURNS"] == "7"
    settings = settings_of(args)
    assert settings["agent"] == {"system_prompt": "Be brief.", "reasoning_effort": "low"}
    assert settings["model"] == {"max_tokens": 500}
    assert settings["mcp_servers"] == {
        "echo": {"command": "/bin/echo", "args": ["a b"], "env": {"KEY": "secret-1"}},
    }
    assert "secret-1" not in str([args.argv, args.env])


def test_servers_of_every_transport_are_configured(program: str) -> None:
    servers = [
        McpServer("a", transport="sse", url="http://a", headers={"K": "v"}),
        McpServer("b", transport="streamable-http", url="http://b"),
    ]
    assert settings_of(spawn(program, mcp_servers=servers))["mcp_servers"] == {
        "a": {"url": "http://a", "headers": {"K": "v"}, "transport": "sse"},
        "b": {"url": "http://b", "headers": {}},
    }


def test_a_text_is_not_filled_in_from_the_environment(program: str) -> None:
    args = spawn(program, system_prompt="Say ${HOME} to $PATH.")
    prompt = json.loads(args.files[SETTINGS_FILE])["agent"]["system_prompt"]
    assert prompt == "Say ${AGENT_MUX_DOLLAR}{HOME} to $PATH."
    assert args.env["AGENT_MUX_DOLLAR"] == "$"


def test_settings_of_an_administrator_are_kept(program: str) -> None:
    args = spawn(program, {"HERMES_MANAGED_DIR": "/srv/hermes"}, system_prompt="x", mcp_servers=[ECHO])
    assert args.files == {}
    assert "HERMES_MANAGED_DIR" not in args.env
    assert args.notes[-1].endswith("not changed: approval_mode, system_prompt, mcp_servers.")
    argv.MANAGED_DIRECTORY.mkdir()
    assert spawn(program, approval_mode="yolo").notes == ()
    assert (
        spawn(program, session_id="s", thinking_effort="low", approval_mode="yolo", max_tokens=9)
        .notes[-1]
        .endswith("not changed: thinking_effort, max_output_tokens.")
    )


def test_a_session_of_hermes_around_us_is_not_ours() -> None:
    assert {"HERMES_SESSION_*", "HERMES_TUI_SIDECAR_URL"} <= set(ADAPTER.session_variables)


# -- what cannot be honoured


@pytest.mark.parametrize(
    ("options", "note_part"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"top_p": 0.5}, "top_p"),
        ({"top_k": 5}, "top_k"),
        ({"thinking_budget_tokens": 2048}, "thinking_budget_tokens"),
        ({"system_prompt": "x", "system_prompt_mode": "replace"}, "'replace' works like 'append'"),
        ({"system_prompt": "x", "system_prompt_mode": "prepend"}, "'prepend' works like 'append'"),
        ({"session_id": "s", "model": "a b"}, "'a b'"),
        ({"attachments": [Attachment(url="https://x/a.png")]}, "1 attachment"),
        ({"attachments": [Attachment(file_path="/notes.txt")]}, "1 attachment"),
    ],
)
def test_each_option_that_cannot_be_honoured_is_one_note(program: str, options: dict[str, Any], note_part: str) -> None:
    (note,) = spawn(program, approval_mode="yolo", **options).notes
    assert note_part in note


# -- what the codec knows


def test_images_are_handed_to_the_codec(program: str) -> None:
    options = RunOptions(
        agent="hermes",
        prompt="look",
        cwd="/",
        attachments=[
            Attachment(file_path="/a b.PNG"),
            Attachment(base64="AAAA", mime_type="image/webp"),
            Attachment(base64="AAAA", mime_type="text/plain"),
            Attachment(file_path="/notes.txt"),
        ],
    )
    machine = SpawnEnvironment(executable=program, temp_dir="/run/tmp", environ={})
    assert ADAPTER.context is not None
    context = ADAPTER.context(options, ADAPTER.spawn(options, machine))
    assert context.images == ("/a b.PNG", "data:image/webp;base64,AAAA")
    assert context.prompt == "look"


def test_over_acp_the_codec_knows_what_that_protocol_takes() -> None:
    assert ADAPTER.context is not None
    options = RunOptions(agent="hermes", prompt="look", cwd="/", mcp_servers=[ECHO])
    context = ADAPTER.context(options, SpawnArgs(argv=("hermes", "acp"), protocol=ACP))
    assert (context.protocol, context.mcp_servers) == (ACP, (ECHO,))
