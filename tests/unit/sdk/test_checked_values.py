"""Every class that users make for us refuses wrong fields when it is made, with the path and the nearest word."""

import dataclasses
import inspect
import pickle
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

import agent_mux
from agent_mux import (
    Approve,
    Attachment,
    Block,
    Choice,
    Defer,
    Deny,
    McpServer,
    Policy,
    RetryPolicy,
    Rule,
    RunOptions,
    Text,
    Tool,
    ValidationError,
)  # fmt: skip
from agent_mux.agents.hooks.registrations import Registration
from agent_mux.client.local_runs.pruning import PruneLimits
from agent_mux.compare.candidates import Candidate
from agent_mux.compare.checks.definitions import CommandCheck, FileCheck, PythonCheck, SchemaCheck
from agent_mux.compare.gates import GateRule
from agent_mux.compare.request import ComparisonRequest
from agent_mux.mcp_server.limits import DelegationLimits
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.checked_values import field_types, members
from agent_mux.sdk.hooks import HookDecision
from agent_mux.sdk.options import validate_options
from agent_mux.sdk.policy import PolicyDecision
from agent_mux.service.settings import ConnectionLimits, ServiceSettings
from agent_mux.sessions.summary import SessionFilter
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.settings.profiles import Profile
from agent_mux.settings.resolver import ResolvedOptions

VALID: Mapping[type, Mapping[str, Any]] = {
    Approve: {},
    Attachment: {"url": "http://localhost"},
    Block: {},
    Candidate: {},
    CommandCheck: {"command": ("make", "test")},
    ComparisonRequest: {"prompt": "x", "candidates": (Candidate(),)},
    ConnectionLimits: {},
    DelegationLimits: {"roots": AllowedDirectories(["/"])},
    FileCheck: {"file": "a.txt"},
    Profile: {"name": "x", "content": {}, "fields": {}, "sources": {}, "paths": {}},
    PruneLimits: {},
    PythonCheck: {"python": "checks:passes"},
    Registration: {"id": "x", "handler": "command", "target": ("notes",)},
    ResolvedOptions: {"options": RunOptions(agent="someone")},
    SchemaCheck: {"schema": {}},
    ServiceSettings: {"config_dir": Path("/nowhere")},
    SessionFilter: {},
    Choice: {"option": 0},
    Defer: {},
    Deny: {},
    GateRule: {},
    HookDecision: {},
    McpServer: {"name": "docs", "command": "docs-server"},
    Policy: {},
    PolicyDecision: {"decision": "deny"},
    RetryPolicy: {},
    Rule: {"decision": "deny"},
    RunOptions: {"agent": "someone"},
    Text: {"text": "x"},
    Tool: {"function": print},
}
"""The classes that users make, with the fields of a valid object."""
MADE_BY_US = {
    "ApprovalDetail", "Breach", "ChangedFile", "Denial", "PendingInteraction", "QuotaWindow", "RunAttempt", "RunError",
    "RunResult", "TokenUsage", "Worktree", "FieldError", "BaseEvent", "CostRecord", "HookCall", "InputDetail",
    "RunPlan", "UnknownEvent",
}  # fmt: skip
"""Public classes of values that only agent-mux makes, and that no function of it takes."""
FUNCTIONS = {("RunOptions", "tools"), ("RunOptions", "hooks")}
"""Fields of functions, which have a test of their own."""


class Other:
    """A value that no field accepts."""


def wrong_values(hint: Any) -> Iterator[Any]:
    """Yield values that are wrong for a type: another class, a text for a list, wrong items and words, None."""
    yield Other()
    kinds = members(hint)
    if NoneType not in kinds:
        yield None
    if not {float, int, bool} & set(kinds) and get_origin(kinds[0]) is not Literal:
        yield 3.5
    words = [one for one in kinds if get_origin(one) is Literal]
    if words:
        yield f"{get_args(words[0])[0]}x"
        yield str(get_args(words[0])[0]).title()
    if str not in kinds and Path not in kinds and not words:
        yield "text"
    for one in kinds:
        origin = get_origin(one)
        if origin in {tuple, frozenset, Sequence}:
            yield [Other()]
            yield [3.5]
        if origin in {Mapping, dict}:
            yield {3: "x"}
            yield [("a", "b")]
            if get_args(one)[1] is str:
                yield {"A": 1}


def cases() -> list[Any]:
    return [
        pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{number}")
        for kind in VALID
        for name, hint in field_types(kind).items()
        if (kind.__name__, name) not in FUNCTIONS and hint is not Any
        for number, value in enumerate(wrong_values(hint))
    ]


def test_every_public_value_is_known_here() -> None:
    public = [getattr(agent_mux, name) for name in agent_mux.__all__]
    values = {
        one.__name__
        for one in public
        if inspect.isclass(one) and (dataclasses.is_dataclass(one) or issubclass(one, msgspec.Struct))
    }
    assert values - MADE_BY_US <= {kind.__name__ for kind in VALID}
    assert values >= MADE_BY_US


def test_every_checked_class_is_known_here() -> None:
    checked = {kind.__name__ for kind in subclasses(Checked)}  # by name: slots make a second class
    assert {name for name in checked if not name.startswith("_")} <= {kind.__name__ for kind in VALID}


def subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("agent_mux."):
            yield one
            yield from subclasses(one)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"hooks": {"pre_tool_usee": print}}, "hooks.pre_tool_usee"),
        ({"hooks": {"stop": "print"}}, "hooks.stop"),
        ({"hooks": "all"}, "hooks"),
        ({"tools": [3]}, "tools[0]"),
        ({"tools": print}, "tools"),
        ({"tools": None}, "tools"),
        ({"tools": [lambda: None]}, "tools[0]"),
    ],
)
def test_wrong_functions_are_refused_by_name(fields: Any, path: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RunOptions(agent="someone", **fields)
    assert [one.path for one in refused.value.fields] == [path]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: agent_mux.AgentMux(default_agent=5), "default_agent"),  # type: ignore[arg-type]
        (lambda: agent_mux.AgentMux(config_dir=5), "config_dir"),  # type: ignore[arg-type]
        (lambda: agent_mux.AgentMux(control_sockets="no"), "control_sockets"),  # type: ignore[arg-type]
        (lambda: agent_mux.AgentMux(max_concurrent_runs="2"), "max_concurrent_runs"),  # type: ignore[arg-type]
        (lambda: agent_mux.AgentMux(approval_mode="Deny"), "approval_mode"),  # type: ignore[arg-type]
        (lambda: agent_mux.BlockingAgentMux(default_model=3), "default_model"),  # type: ignore[arg-type]
        (lambda: agent_mux.BlockingAgentMux(backend="curio"), "backend"),  # type: ignore[arg-type]
        (lambda: agent_mux.RemoteMux(5), "url"),  # type: ignore[arg-type]
        (lambda: agent_mux.RemoteMux("http://localhost", token=b"secret"), "token"),  # type: ignore[arg-type]
        (lambda: agent_mux.RemoteMux("http://localhost", request_timeout="5"), "request_timeout"),  # type: ignore[arg-type]
    ],
)
def test_wrong_argument_of_a_client_is_refused_by_name(make: Any, name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        make()
    assert [one.path for one in refused.value.fields] == [name]
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("kind", VALID, ids=lambda kind: kind.__name__)
def test_valid_objects_are_made_copied_and_replaced(kind: Any) -> None:
    made = kind(**VALID[kind])
    replace = dataclasses.replace if dataclasses.is_dataclass(kind) else msgspec.structs.replace
    assert replace(made) == made
    if kind is not DelegationLimits:  # its directories have no equality
        assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  # our own


@pytest.mark.parametrize(("kind", "name", "value"), cases())
def test_wrong_field_is_refused_by_name(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        kind(**{**VALID[kind], name: value})
    path = name if kind is RunOptions else f"{kind.__name__}.{name}"
    assert all(one.path.startswith(path) for one in refused.value.fields)
    made = kind(**VALID[kind])
    replace = dataclasses.replace if dataclasses.is_dataclass(kind) else msgspec.structs.replace
    with pytest.raises(ValidationError):
        replace(made, **{name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule(decision="block"), "Rule.decision: got 'block'; allowed: allow, deny, ask"),  # type: ignore[arg-type]
        (lambda: Rule(decision="Deny"), "did you mean 'deny'?"),  # type: ignore[arg-type]
        (lambda: Rule(decision="deny", tools="write_file"), "Rule.tools: got 'write_file'; allowed: a list of strings"),  # type: ignore[arg-type]
        (lambda: Rule(decision="deny", risk=("meduim",)), "Rule.risk[0]: got 'meduim'; .*did you mean 'medium'?"),  # type: ignore[arg-type]
        (lambda: Rule(decision="deny", tools=("",)), "Rule.tools[0]: got ''"),
        (lambda: Policy(rules=({"decision": "dney"},)), "Policy.rules[0].decision: got 'dney'"),  # type: ignore[arg-type]
        (lambda: Policy(rules=({"decision": "deny", "tolls": ["x"]},)), "did you mean 'tools'?"),  # type: ignore[arg-type]
        (lambda: Policy(timeout=float("nan")), "Policy.timeout: got nan"),
        (lambda: McpServer("x", transport="http"), "McpServer.transport: got 'http'"),  # type: ignore[arg-type]
        (lambda: RetryPolicy(max_attempts=0), "RetryPolicy.max_attempts: got 0"),
        (lambda: Attachment(url="http://x", base64="AA=="), "exactly one of file_path, url, base64"),
        (lambda: GateRule(min_pass_rate=80), "a number from 0 to 1"),
    ],
)
def test_error_names_field_value_and_allowed_values(make: Any, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        make()
    for part in message.split(".*"):
        assert part in str(refused.value)


def test_lists_and_mappings_become_what_the_fields_name() -> None:
    policy = Policy(rules=[{"decision": "deny", "tools": ["write_file"]}])  # type: ignore[arg-type]
    assert policy == Policy(rules=(Rule(decision="deny", tools=("write_file",)),))
    assert RetryPolicy(retry_on=["TIMEOUT"]).retry_on == frozenset({"TIMEOUT"})  # type: ignore[arg-type]


class Unchecked(Rule):
    """A rule whose check somebody removed."""

    def __post_init__(self) -> None:
        """Check nothing."""


class Word(StrEnum):
    """Words of a program of its own."""

    DENY = "deny"


def test_rule_of_a_subclass_is_checked_by_the_policy() -> None:
    with pytest.raises(ValidationError, match=r"Policy.rules\[0\].decision: got 'block'"):
        Policy(rules=(Unchecked(decision="block", tools=("write_file",)),))  # type: ignore[arg-type]
    assert Policy(rules=(Unchecked(decision="deny"),)).rules[0].decision == "deny"


def test_members_of_a_text_enumeration_are_words() -> None:
    rule = Rule(decision=Word.DENY)  # type: ignore[arg-type]
    assert (rule.decision, type(rule.decision)) == ("deny", str)


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ({"name": "a", "transport": "sse", "url": "file:///etc/passwd"}, "mcp_servers[0].url"),
        ({"name": "a", "command": "x\0y"}, "mcp_servers[0].command"),
        ({"name": "a", "command": "x", "env": {"A=B": "1"}}, "mcp_servers[0].env.A=B"),
    ],
)
def test_server_that_cannot_be_started_is_refused_before_a_run(server: Any, path: str) -> None:
    with pytest.raises(ValidationError) as refused:
        validate_options(RunOptions(agent="someone", prompt="hi", mcp_servers=[server]))
    assert [one.path for one in refused.value.fields] == [path]


def test_variables_that_were_changed_after_the_check_are_checked_before_a_run() -> None:
    server = McpServer("a", command="x", env={"A": "1"})
    dict.__setitem__(server.env, "A", 1)  # type: ignore[type-var]
    with pytest.raises(ValidationError, match=r"mcp_servers\[0\].env.A"):
        validate_options(RunOptions(agent="someone", prompt="hi", mcp_servers=[server]))
