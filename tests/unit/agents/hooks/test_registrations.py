"""Parsing of `hooks.json`."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMuxError
from agent_mux.agents.hooks.registrations import Registration, parse_registrations
from agent_mux.sdk.hooks import HookCall

PATH = Path("/home/dev/.agent-mux/hooks.json")


def parsed(*hooks: Any) -> tuple[Registration, ...]:
    return parse_registrations(json.dumps({"hooks": list(hooks)}), PATH)


def test_missing_fields_have_defaults() -> None:
    (one,) = parsed({"id": "a", "handler": "builtin", "target": "log"})
    assert (one.agent, one.hook_type, one.priority, one.enabled) == ("*", "*", 100, True)


def test_targets_are_split_into_words() -> None:
    targets = [
        one.target
        for one in parsed(
            {"id": "a", "handler": "command", "target": "notify 'two words' $HOME"},
            {"id": "b", "handler": "command", "target": ["notify", "; rm"]},
            {"id": "c", "handler": "builtin", "target": "policy:rules:2.toml"},
            {"id": "d", "handler": "script", "target": "my hook.py"},
        )
    ]
    assert targets == [
        ("notify", "two words", "$HOME"),
        ("notify", "; rm"),
        ("policy", "rules:2.toml"),
        ("my hook.py",),
    ]


def test_relative_paths_resolve_against_the_file() -> None:
    (one,) = parsed({"id": "a", "handler": "builtin", "target": "policy:rules.toml"})
    assert one.file() == PATH.parent / "rules.toml"


def test_applies_to_agent_and_hook_type() -> None:
    one, every, off = parsed(
        {"id": "a", "agent": "pi", "hookType": "stop", "handler": "builtin", "target": "log"},
        {"id": "b", "handler": "builtin", "target": "log"},
        {"id": "c", "handler": "builtin", "target": "log", "enabled": False},
    )
    calls = [
        HookCall(agent=agent, hook_type=kind)
        for agent, kind in (("pi", "stop"), ("pi", "pre_tool_use"), ("omp", "stop"))
    ]
    assert [one.applies_to(call) for call in calls] == [True, False, False]
    assert [every.applies_to(call) for call in calls] == [True, True, True]
    assert [off.applies_to(call) for call in calls] == [False, False, False]


def test_can_decide() -> None:
    several = parsed(
        {"id": "a", "handler": "builtin", "target": "log"},
        {"id": "b", "handler": "builtin", "target": "policy:x"},
        {"id": "c", "handler": "script", "target": "x.py", "hookType": "stop"},
        {"id": "d", "handler": "script", "target": "x.py", "hookType": "permission_request"},
    )
    assert [one.can_decide for one in several] == [False, True, False, True]


def test_comments_are_allowed() -> None:
    assert parse_registrations('{"hooks": [ /* none yet */ ], }', PATH) == ()


def test_text_that_is_not_a_list_of_hooks_is_rejected() -> None:
    for text, message in (('{"hooks": [', "line 1"), ("[]", "object"), ('{"hook": []}', '{"hooks": [...]}')):
        with pytest.raises(AgentMuxError, match="cannot be used") as caught:
            parse_registrations(text, PATH)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": None}, "hooks[0].id"),
        ({"target": "lgo"}, "hooks[0].target: unknown builtin 'lgo'; did you mean 'log'?"),
        ({"handler": "comand"}, "hooks[0].handler: unknown handler 'comand'; did you mean 'command'?"),
        ({"hooktype": "stop"}, "hooks[0]: unknown field 'hooktype'; did you mean 'hookType'?"),
        ({"hookType": "pre_tool"}, "hooks[0].hookType: unknown type 'pre_tool'; did you mean 'pre_tool_use'?"),
        ({"target": "policy"}, "write policy:FILE"),
        ({"handler": "command", "target": "a 'b"}, "hooks[0].target"),
        ({"handler": "command", "target": []}, "hooks[0].target"),
        ({"handler": "command", "target": [1]}, "hooks[0].target"),
        ({"handler": "script", "target": ["x"]}, "hooks[0].target"),
        ({"priority": "1"}, "hooks[0].priority"),
        ({"priority": True}, "hooks[0].priority"),
        ({"enabled": 1}, "hooks[0].enabled"),
        ({"id": ""}, "hooks[0].id"),
        ({"id": "a\x1b[2J"}, "hooks[0].id"),
        ({"agent": 3}, "hooks[0].agent"),
    ],
)
def test_error_names_file_and_position(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        parsed({"id": "a", "handler": "builtin", "target": "log", **fields})
    assert caught.value.code == "CONFIG_ERROR"
    assert str(PATH) in str(caught.value)
    assert message in str(caught.value)


def test_incomplete_registrations_are_rejected() -> None:
    log = {"id": "a", "handler": "builtin", "target": "log"}
    for several, message in (
        ([3], "hooks[0] is not an object"),
        ([{"id": "a"}], "missing handler"),
        ([log, log], "duplicate id"),
    ):
        with pytest.raises(AgentMuxError, match="cannot be used") as caught:
            parsed(*several)
        assert message in str(caught.value)
