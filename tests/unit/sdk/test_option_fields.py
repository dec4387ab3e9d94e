"""The keyword arguments of a run, as type checkers see them, are the fields of `RunOptions`."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from agent_mux.events import AgentEventType, EventName
from agent_mux.sdk import interactions, option_fields, options, policy
from agent_mux.sdk.facts import Risk
from agent_mux.sdk.hooks import HookType
from agent_mux.sdk.in_process import HookFunction, Tool
from agent_mux.sdk.option_fields import (
    AttachmentFields,
    McpServerFields,
    PolicyFields,
    RetryPolicyFields,
    RuleFields,
    RunOptionFields,
)
from agent_mux.sdk.options import DURATIONS, Attachment, McpServer, RetryPolicy, RunOptions
from agent_mux.sdk.policy import Decision, Policy, Rule

NAMES = {
    **vars(options),
    **vars(interactions),
    **vars(policy),
    **vars(option_fields),
    "Tool": Tool,
    "HookType": HookType,
    "HookFunction": HookFunction,
    "Decision": Decision,
    "Risk": Risk,
}
FORMS: dict[Any, Any] = {
    Attachment: AttachmentFields,
    McpServer: McpServerFields,
    RetryPolicy: RetryPolicyFields,
    Policy: PolicyFields,
    Rule: RuleFields,
}
"""The TypedDict that may stand for each class."""


def hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, localns=NAMES)


def alternatives(hint: Any) -> frozenset[Any]:
    """Return the members of a union , comparable: without order, None and TypedDicts."""
    members = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    return frozenset(comparable(one) for one in members if one is not NoneType and one not in FORMS.values())


def comparable(hint: Any) -> Any:
    origin = get_origin(hint)
    if origin in (UnionType, Union):
        return alternatives(hint)
    if origin in (tuple, frozenset, Sequence, Collection):
        items = [one for one in get_args(hint) if one is not Ellipsis]
        return "items of", *(alternatives(one) for one in items)
    if origin is Mapping:
        return "mapping of", *(alternatives(one) for one in get_args(hint))
    return comparable(get_args(hint)[0]) if origin is Annotated else hint


def names_of(kind: Any) -> set[str]:
    return {spec.name for spec in (fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind))}


@pytest.mark.parametrize(("kind", "form"), [(RunOptions, RunOptionFields), *FORMS.items()])
def test_keywords_have_the_names_and_types_of_the_fields(kind: Any, form: Any) -> None:
    expected, found = hints(kind), hints(form)
    found.pop("max_turns", None)  # the old name of max_model_calls
    file = "src/agent_mux/sdk/option_fields.py"
    assert set(found) == names_of(kind), f"{form.__name__} in {file} must have the fields of {kind.__name__}"
    for name in found:
        also = {str} if name in DURATIONS else set()  # a duration with a unit, which the class converts to seconds
        assert alternatives(found[name]) == alternatives(expected[name]) | also, f"{form.__name__}.{name} in {file}"


def test_every_option_may_be_none() -> None:
    assert [name for name, hint in hints(RunOptionFields).items() if NoneType not in get_args(hint)] == []


def test_structured_options_also_take_mappings() -> None:
    found = hints(RunOptionFields)
    for kind, form in FORMS.items():
        taken = [hint for hint in (*found.values(), *hints(PolicyFields).values()) if mentions(hint, kind)]
        assert taken
        assert all(mentions(hint, form) for hint in taken), form.__name__


def mentions(hint: Any, kind: Any) -> bool:
    return hint is kind or any(mentions(one, kind) for one in get_args(hint))


def test_event_names_are_those_of_the_enumeration() -> None:
    assert get_args(EventName) == tuple(one.value for one in AgentEventType)


def test_comparison_notices_another_type() -> None:
    assert alternatives(str | os.PathLike[str] | None) == alternatives(os.PathLike[str] | str)
    assert alternatives(Sequence[str] | None) == alternatives(tuple[str, ...])
    assert alternatives(Sequence[int]) != alternatives(Sequence[str])
    assert alternatives(Callable[[int], str]) != alternatives(Callable[[str], str])
