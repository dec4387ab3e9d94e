"""Arguments and settings that reach the agent as they are, and their conflicts with what agent-mux sets."""

from dataclasses import replace
from typing import Any

import pytest

from agent_mux.errors import CapabilityError, ValidationError
from agent_mux.sdk.adapter import AgentCapabilities, SpawnArgs, check_capabilities
from agent_mux.sdk.native_options import add_extra_args, merge_native_options, nested_options
from agent_mux.sdk.options import RunOptions, validate_options
from agent_mux.sdk.policy import Policy
from agent_mux_adapters.claude import ADAPTER

CAPABILITIES = AgentCapabilities(agent="sample", approval_modes=("prompt",))
SPAWN = SpawnArgs(argv=("/bin/x", "--model=m", "--dir=/a", "-"), protocol="p", extra_args_at=-1)
OWNER = replace(ADAPTER, owned_flags={"-m": "use the option `model`"}, repeatable_flags=frozenset({"--dir"}))


def test_extra_args_are_inserted_where_the_adapter_wants_them() -> None:
    extended = add_extra_args(OWNER, SPAWN, ["--dir=/b", "--new", "value"])
    assert extended.argv == ("/bin/x", "--model=m", "--dir=/a", "--dir=/b", "--new", "value", "-")
    assert add_extra_args(OWNER, replace(SPAWN, extra_args_at=None), ["--new"]).argv[-1] == "--new"
    assert add_extra_args(OWNER, SPAWN, []) is SPAWN


@pytest.mark.parametrize(
    ("argument", "other"),
    [
        ("--model=n", "'--model=m'"),
        ("--model", "'--model=m'"),
        ("-m", "use the option `model`"),
        ("-mn", "use the option `model`"),
    ],
)
def test_conflicting_argument_is_refused_and_names_both(argument: str, other: str) -> None:
    with pytest.raises(ValidationError) as caught:
        add_extra_args(OWNER, SPAWN, ["--fine", argument])
    [error] = caught.value.fields
    assert (error.path, error.received) == ("extra_args[1]", argument)
    assert other in str(caught.value)


def test_dots_separate_levels_and_keys_inside_values_stay_whole() -> None:
    assert nested_options({"a.b": 1, "a.c": {"x.y": 2}, "d": [3]}) == {"a": {"b": 1, "c": {"x.y": 2}}, "d": [3]}


@pytest.mark.parametrize("options", [{"a": 1, "a.b": 2}, {"a.b": 2, "a": 1}, {"a..b": 1}, {".": 1}])
def test_contradicting_keys_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="native_options"):
        nested_options(options)


def test_native_options_are_merged_into_ours_and_a_conflict_names_both() -> None:
    ours = {"permissions": {"ask": ["Read"]}}
    assert merge_native_options("x", ours, {"permissions.allow": ["A"], "b": 1}) == {
        "permissions": {"ask": ["Read"], "allow": ["A"]}, "b": 1,
    }  # fmt: skip
    with pytest.raises(ValidationError) as caught:
        merge_native_options("x", ours, {"permissions": {"ask": []}})
    assert "native_options.permissions.ask" in str(caught.value)
    assert "sets permissions.ask of x to ['Read']" in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        {"extra_args": ["--x"]}, {"native_options": {"a": 1}}, {"allowed_tools": ["A"]}, {"disallowed_tools": ["A"]},
        {"add_dirs": ["/"]}, {"fallback_model": "m"}, {"thinking_override": {"effort": "x"}},
    ],
    ids=str,
)  # fmt: skip
def test_agent_without_the_setting_refuses_and_names_the_next_step(option: dict[str, Any]) -> None:
    [name] = option
    with pytest.raises(CapabilityError, match=f"does not support the option {name}; ") as caught:
        check_capabilities(RunOptions(agent="sample", prompt="x", **option), CAPABILITIES)
    assert caught.value.agent == "sample"


def test_unknown_key_of_the_thinking_override_is_refused_with_the_known_ones() -> None:
    capabilities = replace(CAPABILITIES, thinking_override=("effort", "display"))
    with pytest.raises(ValidationError, match=r"thinking_override.efort: got 1; allowed: some of effort, display"):
        check_capabilities(RunOptions(agent="sample", prompt="x", thinking_override={"efort": 1}), capabilities)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"extra_args": "--x"}, "extra_args"),
        ({"extra_args": ["a\0b"]}, "extra_args[0]"),
        ({"allowed_tools": [" "]}, "allowed_tools[0]"),
        ({"allowed_tools": ["A"], "disallowed_tools": ["A"]}, "allowed_tools"),
        ({"allowed_tools": ["A"], "policy": Policy()}, "allowed_tools"),
        ({"native_options": {"": 1}}, "native_options"),
        ({"native_options": [1]}, "native_options"),
        ({"thinking_override": {1: 1}}, "thinking_override"),
        ({"fallback_model": ""}, "fallback_model"),
        ({"add_dirs": ["relative"]}, "add_dirs[0]"),
        ({"add_dirs": ["/no/such/directory"]}, "add_dirs[0]"),
        ({"approval_mode": "plans"}, "approval_mode"),
    ],
)
def test_invalid_value_is_reported_with_its_path(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        validate_options(RunOptions(agent="sample", prompt="x", **options))
    assert path in [one.path for one in caught.value.fields]
