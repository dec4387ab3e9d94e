"""What stands in `hooks.json`, and what does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMuxError
from agent_mux.hooks.call import HookCall
from agent_mux.hooks.registrations import Registration, parse_registrations

PATH = Path("/home/dev/.agent-mux/hooks.json")


def parsed(*hooks: Any) -> tuple[Registration, ...]:
    return parse_registrations(json.dumps({"hooks": list(hooks)}), PATH)


def test_what_is_not_said_has_a_default() -> None:
    (one,) = parsed({"id": "a", "handler": "builtin", "target": "log"})
    assert (one.agent, one.hook_type, one.priority, one.enabled) == ("*", "*", 100, True)


def test_targets_are_words() -> None:
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


def test_files_are_named_from_the_file_that_names_them() -> None:
    (one,) = parsed({"id": "a", "handler": "builtin", "target": "policy:rules.toml"})
    assert one.file() == PATH.parent / "rules.toml"


def test_what_it_is_called_for() -> None:
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


def test_who_can_decide() -> None:
    several = parsed(
        {"id": "a", "handler": "builtin", "target": "log"},
        {"id": "b", "handler": "builtin", "target": "policy:x"},
        {"id": "c", "handler": "script", "target": "x.py", "hookType": "stop"},
        {"id": "d", "handler": "script", "target": "x.py", "hookType": "permission_request"},
    )
    assert [one.can_decide for one in several] == [False, True, False, True]


def test_comments_are_allowed() -> None:
    assert parse_registrations('{"hooks": [ /* none yet */ ], }', PATH) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"hooks": [', "line 1"),
        ("[]", "object"),
        ('{"hook": []}', '{"hooks": [...]}'),
        ('{"hooks": [3]}', "hooks[0] is no object"),
        ('{"hooks": [{"handler": "builtin", "target": "log"}]}', "hooks[0] has no id"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "lgo"}]}', "hooks[0].target: 'lgo'; did you mean 'log'?"),
        ('{"hooks": [{"id": "a", "handler": "comand", "target": "x"}]}', "did you mean 'command'?"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log", "hooktype": "stop"}]}', "did you mean 'hookType'?"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log", "hookType": "pre_tool"}]}',
         "hooks[0].hookType: 'pre_tool'; did you mean 'pre_tool_use'?"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "policy"}]}', "write policy:FILE"),
        ('{"hooks": [{"id": "a", "handler": "command", "target": "a \'b"}]}', "hooks[0].target"),
        ('{"hooks": [{"id": "a", "handler": "command", "target": []}]}', "hooks[0].target"),
        ('{"hooks": [{"id": "a", "handler": "command", "target": [1]}]}', "hooks[0].target"),
        ('{"hooks": [{"id": "a", "handler": "script", "target": ["x"]}]}', "hooks[0].target"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log", "priority": "1"}]}', "hooks[0].priority"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log", "priority": true}]}', "hooks[0].priority"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log", "enabled": 1}]}', "hooks[0].enabled"),
        ('{"hooks": [{"id": "", "handler": "builtin", "target": "log"}]}', "hooks[0].id"),
        ('{"hooks": [{"id": "a\\u001b[2J", "handler": "builtin", "target": "log"}]}', "hooks[0].id"),
        ('{"hooks": [{"id": "a", "handler": "builtin", "target": "log"}, {"id": "a", "handler": "builtin", "target": "log"}]}',
         "hooks[1].id: 'a' is there twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_names_file_and_place(text: str, said: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        parse_registrations(text, PATH)
    assert caught.value.code == "CONFIG_ERROR"
    assert str(PATH) in str(caught.value)
    assert said in str(caught.value)
