"""Options that are bound to flags, settings and requests of Codex."""

import json
import tomllib
from typing import Any

import pytest
from codex_recordings import ADAPTER, APP_SERVER

from agent_mux.errors import ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import STDOUT, WriteStdin
from agent_mux.sdk.native_options import add_extra_args
from agent_mux.sdk.options import RunOptions

MACHINE = SpawnEnvironment(executable="/bin/codex", temp_dir="/run/tmp", environ={})


def options(**given: Any) -> RunOptions:
    return RunOptions(**{"agent": "codex", "prompt": "do it", "cwd": "/", **given})


def spawn(**given: Any) -> SpawnArgs:
    asked = options(**given)
    return add_extra_args(ADAPTER, ADAPTER.spawn(asked, MACHINE), asked.extra_args)


def config(args: SpawnArgs) -> dict[str, Any]:
    return tomllib.loads("\n".join(arg.removeprefix("--config=") for arg in args.argv if arg.startswith("--config=")))


def requests(**given: Any) -> dict[str, Any]:
    """Return the parameters of our requests up to the first turn, by method."""
    asked = options(**given)
    assert ADAPTER.context is not None
    codec = ADAPTER.protocols[APP_SERVER].codec(ADAPTER.context(asked, ADAPTER.spawn(asked, MACHINE)))
    thread = {"id": "T", "turns": [], "model": "gpt-x"}
    lines = [{"id": 1, "result": {"userAgent": "x/1"}}, {"id": 2, "result": {"thread": thread, "model": "gpt-x"}}]
    steps = [*codec.start()]
    for number, line in enumerate(lines):
        sent = [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]
        asked_for = [message for message in sent if "id" in message][number]
        steps += codec.receive(json.dumps({**line, "id": asked_for["id"]}).encode(), STDOUT)
    sent = [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]
    return {message["method"]: message.get("params") for message in sent}


@pytest.mark.parametrize("mode", ["yolo", "prompt"])
def test_native_options_are_toml_settings(mode: str) -> None:
    given = {"model_verbosity": "low", "tools.web_search": True, "projects": {"/a.b": {"trust_level": "trusted"}}}
    found = config(spawn(approval_mode=mode, native_options=given))
    assert found["model_verbosity"] == "low"
    assert found["tools"] == {"web_search": True}
    assert found["projects"] == {"/a.b": {"trust_level": "trusted"}}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"native_options": {"sandbox_mode": "read-only"}}, "sandbox_mode"),
        ({"native_options": {"features": {"unbounded_connection_retries": True}}}, "features.unbounded_conn"),
        ({"native_options": {"model": "x"}, "model": "y"}, "model of codex to 'y'"),
    ],
)
def test_setting_that_is_ours_is_refused(given: dict[str, Any], path: str) -> None:
    with pytest.raises(ValidationError, match=path):
        spawn(**given)


def test_null_is_refused_because_toml_has_none() -> None:
    with pytest.raises(ValidationError, match="values of TOML"):
        spawn(native_options={"a": None})


def test_extra_args_of_exec_precede_the_dash() -> None:
    assert spawn(approval_mode="yolo", extra_args=["--oss"]).argv[-2:] == ("--oss", "-")
    assert spawn(extra_args=["--strict-config"]).argv[-1] == "--strict-config"


@pytest.mark.parametrize("argument", ["-c", "-cmodel=x", "--config=a=1", "--sandbox", "-mx", "--add-dir=/"])
def test_flag_of_an_option_is_refused(argument: str) -> None:
    with pytest.raises(ValidationError, match="of codex"):
        spawn(approval_mode="yolo", extra_args=[argument])


def test_further_directories_are_writable() -> None:
    assert "--add-dir=/usr" in spawn(approval_mode="yolo", add_dirs=["/usr"]).argv
    assert config(spawn(add_dirs=["/usr"]))["sandbox_workspace_write"] == {"writable_roots": ["/usr"]}


def test_plan_mode_is_the_collaboration_mode_in_a_read_only_sandbox() -> None:
    sent = requests(approval_mode="plan")
    assert sent["thread/start"]["sandbox"] == "read-only"
    mode = sent["turn/start"]["collaborationMode"]
    assert (mode["mode"], mode["settings"]["model"]) == ("plan", "gpt-x")
    assert "collaborationMode" not in requests(approval_mode="prompt")["turn/start"]


def test_thinking_override_has_levels_of_its_own() -> None:
    override = {"effort": "minimal", "summary": "detailed"}
    assert requests(thinking_override=override, thinking_effort="high")["turn/start"]["effort"] == "minimal"
    found = config(spawn(approval_mode="yolo", thinking_override=override))
    assert (found["model_reasoning_effort"], found["model_reasoning_summary"]) == ("minimal", "detailed")
