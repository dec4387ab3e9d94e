"""Terminal profiles: which one is selected, its effect on the command line, and errors in user profiles."""

import re
from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import SpawnEnvironment
from agent_mux.sdk.codec import TerminalSize
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters.terminal import ADAPTER
from agent_mux_adapters.terminal.argv import build_spawn_args, codec_context
from agent_mux_adapters.terminal.profile import Dialog, FailurePattern, Profile, built_in, profile_for, read_profile

HOW_TO = Path(__file__).parents[4] / "docs/how-to/drive-any-program.md"


def environment(program: str = "/bin/mine", arguments: tuple[str, ...] = (), **environ: str) -> SpawnEnvironment:
    return SpawnEnvironment(executable=program, arguments=arguments, temp_dir="/t", environ=environ)


def options(**fields: Any) -> RunOptions:
    return RunOptions(**{"agent": "terminal", "prompt": "hello", "cwd": "/", **fields})


@pytest.mark.parametrize(
    ("program", "name"),
    [("/usr/bin/pi", "pi"), ("/x/openclaw", "openclaw"), ("/x/openclaw.mjs", "openclaw"), ("/bin/sh", "line")],
)
def test_program_name_selects_the_profile(program: str, name: str) -> None:
    assert profile_for(program).name == name
    assert build_spawn_args(options(), environment(program)).protocol == name


@pytest.mark.parametrize("name", built_in())
def test_built_in_profile_can_be_selected(name: str) -> None:
    assert build_spawn_args(options(), environment(AMUX_TERMINAL_PROFILE=name)).protocol == name


@pytest.mark.parametrize("name", built_in())
def test_each_built_in_profile_is_a_protocol(name: str) -> None:
    assert ADAPTER.protocols[name].quiet_after == {"short": 0.7, "long": 3.0}[built_in()[name].rest]


@pytest.mark.parametrize(("rest", "protocol"), [("short", "custom"), ("long", "custom-patient")])
def test_user_profile_reaches_the_codec(tmp_path: Path, rest: str, protocol: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\nready = "^> $"\nrest = "{rest}"\n')
    spawn = build_spawn_args(options(), environment(AMUX_TERMINAL_PROFILE=str(path)))
    context = codec_context(options(), spawn)
    assert spawn.protocol == protocol
    assert context.settings["profile"]["name"] == "mine"
    codec = ADAPTER.protocols[protocol].codec(context)
    assert codec._profile == read_profile(path)  # type: ignore[attr-defined]


def test_command_line_gets_the_model_flag() -> None:
    spawn = build_spawn_args(options(model="--evil"), environment("/x/pi", ("--provider", "p")))
    assert spawn.argv == ("/x/pi", "--provider", "p", "--model=--evil")
    assert spawn.terminal == TerminalSize(120, 40)
    assert spawn.env["TERM"] == "xterm-256color"
    assert spawn.notes == ()


def test_unsupported_options_are_noted() -> None:
    asked = options(model="m", system_prompt="s", temperature=0.0, max_model_calls=3, no_session=True)
    spawn = build_spawn_args(asked, environment("/bin/sh"))
    assert [note.split(" setting for ")[1].removesuffix(": ignored") for note in spawn.notes] == [
        "system_prompt", "temperature", "max_model_calls", "no_session", "model",
    ]  # fmt: skip
    assert spawn.argv == ("/bin/sh",)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("name = ", "at end of document"),
        ('name = "x"', "missing required field `ready`"),
        ('name = "x"\nready = "("', "'(' is not a regular expression"),
        ('name = "x"\nready = "a"\nbusy = "["', "'[' is not a regular expression"),
        ('name = "x"\nready = "a"\n[[dialogs]]\npattern = "*"', "'*' is not a regular expression"),
        ('name = "x"\nready = "a"\n[[failures]]\npattern = "a"\ncode = "NO"', "$.failures[0].code"),
        ('name = "x"\nready = "a"\ncolour = 3', "unknown field `colour`"),
        ('name = "x"\nready = "a"\nrest = "forever"', "$.rest"),
        ('name = "x"\nready = "a"\nmodel_flag = "--model"', "{model}"),
        ('name = "x"\nready = 3', "$.ready"),
        ('name = "x"\nready = "a"\n[[dialogs]]\npattern = "a"\nrisk = "huge"', "$.dialogs[0].risk"),
    ],
)
def test_invalid_profile_is_reported_with_its_file(tmp_path: Path, text: str, wrong: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(AgentMuxError) as caught:
        build_spawn_args(options(), environment(AMUX_TERMINAL_PROFILE=str(path)))
    assert caught.value.code == "CONFIG_ERROR"
    assert str(path) in str(caught.value)
    assert wrong in str(caught.value)


def test_missing_and_binary_profiles_are_reported(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match=r"nowhere\.toml is not a terminal profile: No such file"):
        read_profile(tmp_path / "nowhere.toml")
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(AgentMuxError, match=r"mine\.toml is not a terminal profile:.*utf-8"):
        read_profile(path)


def test_how_to_documents_every_key_with_a_valid_example(tmp_path: Path) -> None:
    page = HOW_TO.read_text("utf-8")
    keys = {key for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for key in re.findall(r"`([\w.]+)`", row)}
    nested = {"dialogs": Dialog, "failures": FailurePattern}
    expected = {*Profile.__struct_fields__, *built_in()}
    expected |= {f"{name}.{key}" for name, kind in nested.items() for key in kind.__struct_fields__}
    assert keys == expected
    path = tmp_path / "mine.toml"
    path.write_text("".join(re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)))
    assert read_profile(path).name == "mine"
