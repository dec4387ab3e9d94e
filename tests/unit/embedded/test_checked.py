"""Options of the embedded agent refuse fields of wrong types when they are made, by name and with the nearest word."""

import dataclasses
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest

import agent_loop
from agent_loop import (
    Access,
    Behavior,
    CacheSettings,
    Compat,
    ConfigurationError,
    ContextSettings,
    ExecutionContext,
    ExecutionLimits,
    Handoff,
    McpServer,
    Preset,
    Reject,
    RepetitionLimits,
    RetrySettings,
    SkillSettings,
    SubAgentKind,
    ThinkingDecay,
    ToolBudget,
    Warn,
)
from agent_loop.checked import _UNIONS, _defaults, _hint_of

VALID: Mapping[type, Mapping[str, Any]] = {
    Access: {},
    Behavior: {},
    CacheSettings: {},
    Compat: {},
    ContextSettings: {},
    ExecutionContext: {"command": ["ssh", "host"]},
    ExecutionLimits: {},
    Handoff: {"target": Preset(name="other")},
    McpServer: {"name": "docs", "command": "docs-server"},
    Preset: {},
    Reject: {"reason": "no"},
    RepetitionLimits: {},
    RetrySettings: {},
    SkillSettings: {},
    SubAgentKind: {"description": "x", "runner": print},
    ThinkingDecay: {"after_turn": 1},
    ToolBudget: {"max_calls": 1},
    Warn: {"message": "careful"},
}
"""The options that callers make, with the fields of a valid object."""


class Other:
    """A value that no field accepts."""


def wrong_values(hint: Any) -> Iterator[Any]:
    kinds = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
    yield Other()
    if NoneType not in kinds:
        yield None
    words = [word for one in kinds if get_origin(one) is Literal for word in get_args(one)]
    if words and str not in kinds:
        yield f"{words[0]}x"
    if str not in kinds and not words:
        yield "text"


def cases() -> Iterator[Any]:
    for kind in VALID:
        for name in _defaults(kind):
            hint = _hint_of(kind, name)
            for number, value in enumerate(wrong_values(hint)):
                yield pytest.param(kind, name, value, hint, id=f"{kind.__name__}-{name}-{number}")


@pytest.mark.parametrize("kind", VALID, ids=lambda kind: kind.__name__)
def test_valid_objects_are_made(kind: Any) -> None:
    kind(**VALID[kind])


@pytest.mark.parametrize(("kind", "name", "value", "hint"), list(cases()))
def test_wrong_field_is_refused_by_name(kind: Any, name: str, value: Any, hint: Any) -> None:
    if hint is Any or name == "output_schema":
        pytest.skip("a field of any type, or of a class of the caller")
    with pytest.raises(ConfigurationError) as refused:
        kind(**{**VALID[kind], name: value})
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Behavior(tool_execution="Parallel"), "tool_execution must be .*; did you mean 'parallel'?"),  # type: ignore[arg-type]
        (lambda: Behavior(limits={"max_turns": 3}), r"limits must be ExecutionLimits\(...\), not {'max_turns': 3}"),  # type: ignore[arg-type]
        (lambda: Behavior(tool_budgets={"a": 3}), r"tool_budgets\['a'\] must be ToolBudget"),  # type: ignore[dict-item]
        (lambda: Preset(tool_names="look"), "tool_names must be a list of a text"),  # type: ignore[arg-type]
        (lambda: Preset(mode="acept-edits"), "did you mean 'accept-edits'"),  # type: ignore[arg-type]
        (lambda: McpServer(name="x", transport="http"), "transport must be 'stdio' or"),  # type: ignore[arg-type]
        (lambda: McpServer(name="x", env={"A": 1}), "env.* must be a text"),  # type: ignore[dict-item]
        (lambda: dataclasses.replace(ExecutionLimits(), max_turns="3"), "max_turns must be a whole number"),  # type: ignore[arg-type]
    ],
)
def test_message_names_field_and_nearest_word(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_secrets_are_not_in_messages() -> None:
    with pytest.raises(ConfigurationError) as refused:
        McpServer(name="x", env={"KEY": b"sk-secret"})  # type: ignore[dict-item]
    assert "sk-secret" not in str(refused.value)


OTHERS = {
    "AgentState", "Compaction", "DoneSignal", "Evaluation", "EventRequest", "Gap", "HTTPTool", "HookContext",
    "HookOverrides", "Image", "LoopRecord", "LoopRunner", "LoopVariant", "ModelRequest", "ModelResponse",
    "ModelSettings", "ParallelLoopOutcome", "ParallelLoopResult", "Pass", "ProviderCapabilities", "PublishedEvent",
    "QuestionAsked", "QuestionClosed", "RunResult", "Session", "ShellTool", "Skill", "SubAgentReport", "SubAgentTask",
    "Surroundings", "Text", "TextChunk", "Thinking", "ThinkingChunk", "Todo", "ToolCall", "ToolCallChunk",
    "ToolContext", "ToolDefinition", "ToolResult", "Usage",
}  # fmt: skip
"""Public values that are no options: messages and results, which the loop checks where it takes them."""


def test_every_public_value_is_known_here() -> None:
    public = [getattr(agent_loop, name) for name in agent_loop.__all__]
    values = {
        one.__name__
        for one in public
        if isinstance(one, type) and (dataclasses.is_dataclass(one) or hasattr(one, "__struct_fields__"))
        if one.__module__ not in {"agent_loop.events", "agent_loop.messages.message"}
    }
    messages = {"Image", "Text", "Thinking", "ToolCall"}
    assert values - {kind.__name__ for kind in VALID} - OTHERS == set()
    assert OTHERS - messages <= values
