"""Options that are bound to flags and settings of Claude Code."""

import json
from typing import Any

import pytest

from agent_mux.errors import ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.native_options import add_extra_args
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux_adapters.claude import ADAPTER


def spawn(**options: Any) -> SpawnArgs:
    environment = SpawnEnvironment(executable="/bin/claude", temp_dir="/tmp/run", environ={})
    asked = RunOptions(agent="claude", **{"prompt": "go", "approval_mode": "yolo", **options})
    return add_extra_args(ADAPTER, ADAPTER.spawn(asked, environment), asked.extra_args)


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"allowed_tools": ["Bash(git *)", "Read"]}, ("--allowedTools=Bash(git *)", "--allowedTools=Read")),
        ({"disallowed_tools": ["WebFetch"]}, ("--disallowedTools=WebFetch",)),
        ({"add_dirs": ["/usr", "/var"]}, ("--add-dir=/usr", "--add-dir=/var")),
        ({"fallback_model": "haiku"}, ("--fallback-model=haiku",)),
        ({"approval_mode": "plan"}, ("--permission-mode=plan", "--permission-prompt-tool=stdio")),
        ({"thinking_override": {"effort": "xhigh"}, "thinking_effort": "low"}, ("--effort=xhigh",)),
        ({"thinking_override": {"type": "disabled", "display": "omitted"}},
         ("--thinking=disabled", "--thinking-display=omitted")),
        ({"extra_args": ["--strict-mcp-config"]}, ("--strict-mcp-config",)),
    ],
)  # fmt: skip
def test_option_is_bound_to_its_flag(options: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert set(flags) <= set(spawn(**options).argv)


def test_thinking_budget_of_the_override_replaces_the_option() -> None:
    args = spawn(thinking_override={"budget_tokens": 2000}, thinking_budget_tokens=4000, thinking_effort="high")
    assert args.env["MAX_THINKING_TOKENS"] == "2000"
    assert not any(word.startswith("--effort") for word in args.argv)


def test_native_options_are_in_a_settings_file_with_the_rules_of_a_policy() -> None:
    args = spawn(native_options={"env.TOKEN": "hush", "cleanupPeriodDays": 1}, policy=Policy(), approval_mode="prompt")
    assert "--settings=/tmp/run/settings.json" in args.argv
    assert "hush" not in " ".join(args.argv)
    settings = json.loads(args.files["settings.json"])
    assert (settings["env"], settings["cleanupPeriodDays"]) == ({"TOKEN": "hush"}, 1)
    assert "Bash" in settings["permissions"]["ask"]


@pytest.mark.parametrize("argument", ["--model=x", "--permission-mode=plan", "-p", "--settings={}", "--add-dir=/"])
def test_flag_of_an_option_is_refused(argument: str) -> None:
    with pytest.raises(ValidationError, match="of claude"):
        spawn(extra_args=[argument])
