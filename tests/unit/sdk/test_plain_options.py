"""Options that are given as plain data work, or fail with the path of the wrong value."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMux, RunOptions, ValidationError
from agent_mux.sdk.options import Attachment, McpServer, RetryPolicy
from agent_mux.sdk.policy import Policy, Rule

OPTIONS = [spec.name for spec in fields(RunOptions)]
WRONG = {
    "an object": object(),
    "bytes": b"x",
    "a list of objects": [object()],
    "a list of mappings": [{"no_such": 1}],
    "a mapping": {"no_such": object()},
    "a mapping without names": {5: object()},
}
RIGHT = {(name, "a mapping") for name in ("output_schema", "native_options", "thinking_override")}


@pytest.fixture(scope="module")
def mux(tmp_path_factory: pytest.TempPathFactory) -> AgentMux:
    return AgentMux(config_dir=tmp_path_factory.mktemp("config"))


def resolved(mux: AgentMux, **values: Any) -> RunOptions:
    return mux.resolve_options(**{"agent": "replay", "prompt": "demo", **values}).options


def message(mux: AgentMux, **values: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        mux.plan(**{"agent": "replay", "prompt": "demo", **values})
    return str(raised.value).removeprefix("invalid options: ")


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_plain_data_is_reported_with_the_name_of_the_option(mux: AgentMux, name: str, kind: str) -> None:
    if (name, kind) in RIGHT:
        assert resolved(mux, **{name: WRONG[kind]}) is not None
        return
    with pytest.raises(ValidationError) as raised:
        mux.plan(**{"agent": "replay", "prompt": "demo", name: WRONG[kind]})  # type: ignore[arg-type]
    for one in raised.value.fields:
        assert one.path.startswith(name)
        assert one.allowed


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_plain_data_in_run_options_is_reported_like_in_keywords(mux: AgentMux, name: str, kind: str) -> None:
    if (name, kind) in RIGHT:
        return
    values: dict[str, Any] = {"agent": "replay", "prompt": "demo", name: WRONG[kind]}
    with pytest.raises(ValidationError) as raised:
        mux.plan(RunOptions(**values))
    assert all(one.path.startswith(name) for one in raised.value.fields)


def test_structured_options_are_built_from_mappings(mux: AgentMux, tmp_path: Path) -> None:
    built = resolved(
        mux,
        mcp_servers=[{"name": "docs", "command": "docs-server", "args": ["-v"], "env": {"A": "b"}}],
        attachments=[{"file_path": str(tmp_path)}, Attachment(url="https://example.org/a.png")],
        retry_policy={"max_attempts": 2, "retry_on": ["TIMEOUT"]},
        policy={"rules": [{"decision": "deny", "commands": ["git push"]}], "default": "allow"},
    )
    assert built.mcp_servers == (McpServer("docs", command="docs-server", args=("-v",), env={"A": "b"}),)
    assert built.attachments == (Attachment(str(tmp_path)), Attachment(url="https://example.org/a.png"))
    assert built.retry_policy == RetryPolicy(max_attempts=2, retry_on=frozenset({"TIMEOUT"}))
    assert built.policy == Policy(rules=(Rule(decision="deny", commands=("git push",)),), default="allow")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"mcp_servers": [{"name": "x"}]}, "mcp_servers[0]: got 'x'; allowed: command (and no url) for stdio"),
        ({"mcp_servers": [{"command": "x"}]}, "mcp_servers[0].name: got None; allowed: a string; it is required"),
        (
            {"mcp_servers": [{"name": "x", "comand": "y"}]},
            "mcp_servers[0].comand: got 'y'; allowed: a field of McpServer; did you mean 'command'?",
        ),
        (
            {"mcp_servers": [{"name": "x", "transport": "tcp"}]},
            "mcp_servers[0].transport: got 'tcp'; allowed: stdio, sse, streamable-http",
        ),
        (
            {"mcp_servers": [{"name": "x", "command": "y", "args": "-v"}]},
            "mcp_servers[0].args: got '-v'; allowed: a list of strings",
        ),
        (
            {"mcp_servers": [{"name": "x", "command": "y", "args": ["-v", 5]}]},
            "mcp_servers[0].args[1]: got 5; allowed: a string",
        ),
        ({"tags": "nightly"}, "tags: got 'nightly'; allowed: a list of strings"),
        ({"prompt": 5}, "prompt: got 5; allowed: a string or a list of strings"),
        ({"model": ["x"]}, "model: got ['x']; allowed: a string"),
        ({"interactive": "yes"}, "interactive: got 'yes'; allowed: True or False"),
        ({"journal": 5}, "journal: got 5; allowed: True or False or a string or a path"),
        ({"on_approval_request": "yes"}, "on_approval_request: got 'yes'; allowed: a function"),
        ({"fail_on": "denied"}, "fail_on: got 'denied'; allowed: a list of some of "),
        ({"retry_policy": {"max_attempts": "3"}}, "retry_policy.max_attempts: got '3'; allowed: a whole number"),
        ({"retry_policy": {"retry_on": ["OOPS"]}}, "retry_policy.retry_on[0]: got 'OOPS'; allowed: CAPABILITY_ERROR, "),
        (
            {"policy": {"rules": [{"tools": ["Bash"]}]}},
            "policy.rules[0].decision: got None; allowed: allow, deny, ask; it is required",
        ),
        ({"policy": "policy.toml"}, "policy: got 'policy.toml'; allowed: a Policy, or a mapping with some of rules, "),
        (
            {"attachments": [{"path": "/a"}]},
            "attachments[0].path: got '/a'; allowed: a field of Attachment; did you mean 'file_path'?",
        ),
        ({"timout": 5}, "timout: got 5; allowed: an option of RunOptions; did you mean 'timeout'?"),
    ],
)
def test_error_names_the_field_and_what_it_takes(mux: AgentMux, values: dict[str, Any], expected: str) -> None:
    assert message(mux, **values).startswith(expected)


@pytest.mark.parametrize(
    "values",
    [
        {"env": {"KEY": ["s3cret"]}},
        {"env": ["s3cret"]},
        {"mcp_servers": [{"name": "x", "command": "y", "env": {"KEY": ["s3cret"]}}]},
        {"mcp_servers": [{"name": "x", "url": ["s3cret"]}]},
        {"mcp_servers": [{"name": "x", "headers": "s3cret"}]},
        {"attachments": [{"base64": ["s3cret"]}]},
    ],
)
def test_error_does_not_show_values_that_may_be_secret(mux: AgentMux, values: dict[str, Any]) -> None:
    assert "s3cret" not in message(mux, **values)


def test_all_wrong_values_are_reported_at_once(mux: AgentMux) -> None:
    assert message(mux, model=5, tags=5, skills=["a", 5]).count("; allowed: ") == 3


def test_mapping_overrides_the_default_values_of_weaker_layers(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path, retry_policy={"max_attempts": 5, "jitter": 0.5})
    policy = resolved(mux, retry_policy={"max_attempts": 3}).retry_policy
    assert policy == RetryPolicy(max_attempts=3, jitter=0.5)
