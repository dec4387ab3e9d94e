"""Validation of options before the start: all invalid fields of a group, without secrets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import CapabilityError, ValidationError
from agent_mux.sdk.adapter import AgentCapabilities, check_capabilities
from agent_mux.sdk.options import Attachment, McpServer, RunOptions, validate_options
from agent_mux.sdk.policy import Policy

GOOD = RunOptions(agent="someone", prompt="hello")
NAN = float("nan")


def options(**fields: Any) -> RunOptions:
    return RunOptions(**{"agent": "someone", "prompt": "hello", **fields})


def bad_fields(**fields: Any) -> list[str]:
    """Return the paths of the invalid fields; types are checked when the options are made, all else before a run."""
    with pytest.raises(ValidationError) as raised:
        validate_options(options(**fields))
    return [field.path for field in raised.value.fields]


def test_minimal_options_are_valid() -> None:
    validate_options(GOOD)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ["one", "two"]},
        {"prompt": "", "interactive": True},
        {"temperature": 0},
        {
            "temperature": 2,
            "top_p": 1.0,
            "top_k": 1,
            "max_tokens": 1,
            "max_model_calls": 1,
            "thinking_budget_tokens": 1024,
        },
        {"timeout": 0, "inactivity_timeout": 0.5, "grace_period": 10**400},
        {"stream": True},
        {"stream": False},
        {"thinking_effort": "max", "system_prompt_mode": "replace", "approval_mode": "deny"},
        {"run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        {"cwd": "/"},
        {"cwd": Path("/")},
        {"env": {"A_1": "", "_b": "two words"}},
        {"mcp_servers": [McpServer("a-1", command="x"), McpServer("b", "sse", url="http://localhost")]},
        {"attachments": [Attachment(url="http://localhost"), Attachment(base64="AA==", mime_type="image/png")]},
        {"tags": ["", "x" * 256], "policy": Policy(timeout=0)},
        {"session_id": "s"},
        {"fork_session_id": "s"},
        {"no_session": True},
    ],
)
def test_valid_options_pass(fields: dict[str, Any]) -> None:
    validate_options(options(**fields))


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"session_id": "a", "fork_session_id": "b"}, "session_id + fork_session_id"),
        ({"session_id": "a", "no_session": True}, "session_id + no_session"),
        ({"session_id": "a", "fork_session_id": "b", "no_session": True}, "session_id + fork_session_id + no_session"),
        ({"session_id": " "}, "session_id"),
        ({"fork_session_id": ""}, "fork_session_id"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": b"bytes"}, "prompt"),
        ({"prompt": "a\0b"}, "prompt"),
        ({"agent": ""}, "agent"),
        ({"policy": {"timeout": -1.0}}, "policy.timeout"),
        ({"policy": {"timeout": NAN}}, "policy.timeout"),
        ({"tags": ["a", "x" * 257]}, "tags[1]"),
        ({"tags": [1]}, "tags[0]"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": NAN}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"max_model_calls": 0}, "max_model_calls"),
        ({"thinking_budget_tokens": 1023}, "thinking_budget_tokens"),
        ({"event_buffer_size": 0}, "event_buffer_size"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": NAN}, "timeout"),
        ({"inactivity_timeout": "1"}, "inactivity_timeout"),
        ({"grace_period": -0.1}, "grace_period"),
        ({"approval_mode": "maybe"}, "approval_mode"),
        ({"isolation": "container"}, "isolation"),
        ({"isolation": None}, "isolation"),
        ({"stream": 1}, "stream"),
        ({"stream": "yes"}, "stream"),
        ({"system_prompt_mode": "middle"}, "system_prompt_mode"),
        ({"thinking_effort": "huge"}, "thinking_effort"),
        ({"run_id": "01arz3ndektsv4rrffq69g5fav"}, "run_id"),
        ({"run_id": "81ARZ3NDEKTSV4RRFFQ69G5FAV"}, "run_id"),
        ({"run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV\n"}, "run_id"),
        ({"cwd": "relative"}, "cwd"),
        ({"cwd": "/not/there"}, "cwd"),
        ({"cwd": 5}, "cwd"),
        ({"cwd": "/\0"}, "cwd"),
        ({"env": {"1A": ""}}, "env"),
        ({"env": {"A=B": ""}}, "env"),
        ({"env": {"A": "a\0b"}}, "env.A"),
        ({"env": {"A": 1}}, "env.A"),
        ({"mcp_servers": [{"name": "a b", "command": "x"}]}, "mcp_servers[0].name"),
        ({"mcp_servers": [McpServer("a", command="x"), {"name": "b"}]}, "mcp_servers[1]"),
        ({"mcp_servers": [{"name": "a", "command": "x", "url": "http://localhost"}]}, "mcp_servers[0]"),
        ({"mcp_servers": [{"name": "a", "transport": "sse", "command": "x"}]}, "mcp_servers[0]"),
        ({"attachments": [{}]}, "attachments[0]"),
        ({"attachments": [{"url": "http://localhost", "base64": "AA==", "mime_type": "a/b"}]}, "attachments[0]"),
        ({"attachments": [{"base64": "AA=="}]}, "attachments[0].mime_type"),
        ({"attachments": [Attachment(file_path="relative")]}, "attachments[0].file_path"),
        ({"attachments": [Attachment(file_path="/not/there")]}, "attachments[0].file_path"),
    ],
)
def test_error_names_the_invalid_field(fields: dict[str, Any], bad: str) -> None:
    assert bad_fields(**fields) == [bad]


def test_attached_file_must_exist(tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.touch()
    validate_options(options(attachments=[Attachment(file_path=str(there))], cwd=tmp_path))
    assert bad_fields(attachments=[Attachment(file_path=str(tmp_path))], cwd=there) == [
        "cwd",
        "attachments[0].file_path",
    ]


def test_error_lists_all_fields_of_the_first_invalid_group() -> None:
    everything = {"session_id": " ", "no_session": True, "prompt": "", "agent": "", "top_p": 9, "timeout": -1}
    assert bad_fields(**everything) == ["session_id + no_session", "session_id"]
    without_session = everything | {"session_id": None, "no_session": False}
    assert bad_fields(**without_session) == ["prompt", "agent"]
    assert bad_fields(top_p=9, timeout=-1) == ["top_p", "timeout"]


def test_error_states_received_and_allowed_values() -> None:
    with pytest.raises(ValidationError) as raised:
        validate_options(options(temperature=3, top_k=0))
    assert list(map(str, raised.value.fields)) == [
        "temperature: got 3; allowed: a number from 0 to 2",
        "top_k: got 0; allowed: a whole number >= 1",
    ]
    with pytest.raises(ValidationError) as raised:
        options(stream="no", approval_mode="Deny")
    assert list(map(str, raised.value.fields)) == [
        "stream: got 'no'; allowed: auto, True, False",
        "approval_mode: got 'Deny'; allowed: yolo, prompt, deny, plan; did you mean 'deny'?",
    ]


SECRET = "sk-very-secret"  # noqa: S105  # not a real key


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {"KEY": SECRET + "\0"}},
        {"env": {"BAD NAME": SECRET}},
        {"env": {"KEY": [SECRET]}},
        {"mcp_servers": [{"name": "a b", "command": "x", "env": {"KEY": SECRET}}]},
        {"mcp_servers": [{"name": "a", "command": "x", "env": SECRET}]},
        {"mcp_servers": [{"name": "a", "transport": "sse", "command": "x", "headers": {"Authorization": SECRET}}]},
        {"mcp_servers": [{"name": "a", "url": f"http://localhost/?key={SECRET}"}]},
        {"attachments": [{"base64": SECRET}]},
    ],
)
def test_errors_contain_no_secrets(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        validate_options(options(**fields))
    assert SECRET not in str(raised.value)
    assert SECRET not in repr(raised.value.fields)


def test_reprs_contain_no_secrets() -> None:
    server = McpServer("a", "sse", url=f"http://localhost/?key={SECRET}", headers={"Authorization": SECRET})
    program = McpServer("b", command="x", env={"KEY": SECRET})
    data = Attachment(base64=SECRET, mime_type="a/b")
    run = options(env={"KEY": SECRET}, mcp_servers=[server, program], attachments=[data])
    assert SECRET not in repr(run)


# -- retries and profiles


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"max_attempts": 0}, "retry_policy.max_attempts"),
        ({"max_attempts": True}, "retry_policy.max_attempts"),
        ({"base_delay": -1.0}, "retry_policy.base_delay"),
        ({"max_delay": float("inf")}, "retry_policy.max_delay"),
        ({"jitter": -0.1}, "retry_policy.jitter"),
        ({"retry_on": ["NO_SUCH_CODE"]}, "retry_policy.retry_on[0]"),
        ("often", "retry_policy"),
    ],
)
def test_invalid_retry_policy_is_rejected(policy: Any, path: str) -> None:
    with pytest.raises(ValidationError) as raised:
        validate_options(options(retry_policy=policy))
    assert [one.path for one in raised.value.fields] == [path]


@pytest.mark.parametrize("name", ["a b", "../x", "x" * 65, "é"])
def test_invalid_profile_name_is_rejected(name: str) -> None:
    with pytest.raises(ValidationError, match="profile"):
        validate_options(options(profile=name))
    validate_options(options(profile="A-z_9"))
    validate_options(options(profile=""))


# -- derived values


def test_prompts_are_joined_with_blank_lines() -> None:
    assert options(prompt=["one", "two"]).prompt_text == "one\n\ntwo"
    assert GOOD.prompt_text == "hello"


def test_max_output_tokens_overrides_max_tokens() -> None:
    assert options(max_tokens=5).output_limit == 5
    assert options(max_tokens=5, max_output_tokens=3).output_limit == 3
    assert GOOD.output_limit is None


def test_working_directory_defaults_to_the_current_one() -> None:
    assert GOOD.working_directory() == str(Path.cwd())
    assert options(cwd=Path("/tmp")).working_directory() == "/tmp"


# -- capabilities

ABLE = AgentCapabilities(
    agent="someone",
    can_resume=True,
    can_fork=True,
    text_streaming=True,
    mcp=True,
    approval_modes=("yolo", "prompt", "deny"),
    thinking=True,
    structured_output=True,
    interactive_mode=True,
    image_input=True,
)
UNABLE = AgentCapabilities(agent="someone", approval_modes=("prompt",))


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"stream": True}, "text streaming"),
        ({"session_id": "s"}, "resuming"),
        ({"fork_session_id": "s"}, "forking"),
        ({"mcp_servers": [McpServer("a", command="x")]}, "MCP"),
        ({"interactive": True}, "interactive"),
        ({"output_schema": {}}, "output schema"),
        ({"attachments": [Attachment(url="http://localhost")]}, "attachments"),
        ({"thinking_effort": "low"}, "thinking"),
        ({"thinking_budget_tokens": 2000}, "thinking"),
        ({"approval_mode": "yolo"}, "approval mode 'yolo'"),
    ],
)
def test_unsupported_option_raises_capability_error(fields: dict[str, Any], what: str) -> None:
    check_capabilities(options(**fields), ABLE)
    with pytest.raises(CapabilityError, match=what):
        check_capabilities(options(model="small", **fields), UNABLE)


def test_unset_options_need_no_capability() -> None:
    check_capabilities(GOOD, UNABLE)
    check_capabilities(options(stream=False), UNABLE)


def test_max_turns_is_the_old_name_of_max_model_calls() -> None:
    old = RunOptions(agent="toy", prompt="hi", max_turns=3)
    assert old == RunOptions(agent="toy", prompt="hi", max_model_calls=3)
    assert replace(old, prompt="again").max_model_calls == 3
    assert replace(old, max_model_calls=None).max_model_calls is None
    assert RunOptions(agent="toy", max_turns=3, max_model_calls=5).max_model_calls == 5
