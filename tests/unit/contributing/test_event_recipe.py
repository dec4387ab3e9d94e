"""Every event is known in all the places that the recipe "Add an event" names."""

import inspect
import json
import re
from importlib import import_module
from pkgutil import iter_modules
from typing import get_args

from tests.unit.contract.contract_cases import CONFORMING
from tests.unit.contributing.recipes import ROOT, Place, check_places, mentions, paths_on_page, text_of

from agent_mux import events
from agent_mux.acp_server.updates import NO_UPDATE, RunUpdates
from agent_mux.api.event_lines import _SUMMARIES
from agent_mux.contract.run import _BEFORE_TURNS_RULES, _IN_TURN_RULES
from agent_mux.events import ALL_EVENTS, CATEGORIES, AgentEventType, BaseEvent, EventName, UnknownEvent, category_of
from agent_mux.sdk.registry import AdapterRegistry

WITHOUT_POSITION = {
    "session_start", "session_resume", "session_fork", "session_end", "turn_start", "turn_end", "step_start",
    "step_end", "cost", "token_usage", "rate_limited", "retry", "interrupted", "aborted", "paused", "resumed",
    "timeout", "turn_limit", "stream_fallback", "auth_error", "rate_limit_error", "context_exceeded", "crash", "error",
    "debug", "log",
}  # fmt: skip
"""Events that no rule confines to a turn or to the time before the first turn."""
WITHOUT_LINE = {
    "session_resume", "session_fork", "session_checkpoint", "session_end", "turn_end", "step_start", "step_end",
    "message_start", "text_delta", "message_stop", "thinking_start", "thinking_delta", "thinking_stop",
    "tool_call_start", "tool_input_delta", "tool_result", "file_read", "shell_start", "shell_stdout_delta",
    "shell_stderr_delta", "shell_exit", "mcp_tool_result", "plugin_loaded", "plugin_invoked", "skill_loaded",
    "agentdoc_read", "image_input_ack", "cost", "token_usage", "interrupted", "aborted", "timeout", "turn_limit",
    "stream_fallback", "context_exceeded", "crash",
}  # fmt: skip
"""Events without a line in the text output: shown in another way, part of the closing line, or not shown."""
FROM_NO_AGENT = {"session_checkpoint", "plugin_invoked", "plugin_error", "aborted", "paused", "resumed", "timeout"}
"""Events that no recorded agent reports, or that agent-mux emits itself."""

CLASSES: dict[str, type[BaseEvent]] = {
    kind.type: kind
    for module in iter_modules(events.__path__)
    for kind in vars(import_module(f"agent_mux.events.{module.name}")).values()
    if inspect.isclass(kind) and issubclass(kind, BaseEvent) and kind not in (BaseEvent, UnknownEvent)
}
"""The event classes by type, whether or not they are registered anywhere."""
SPECIFIED = json.loads((ROOT / "tests/unit/events/spec_events.json").read_text("utf-8"))
CLAIMED = {name for adapter in AdapterRegistry() for name in adapter.capabilities.emits}
IN_STREAMS = {event.get("type") for _, _, stream in CONFORMING for event in stream}


def uses_class(path: str, event_type: str) -> bool:
    return mentions(path, CLASSES[event_type].__name__)


def in_specification(event_type: str) -> bool:
    rules, _, table = text_of("docs/spec/events.md").partition("## 29. Categories")
    return f"`{event_type}`" in rules and f"`{event_type}`" in table


PLACES = (
    Place(
        "src/agent_mux/events/",
        "the class, with a docstring that cites its section of the specification",
        lambda name: re.search(r"docs/spec/events\.md, section \d", CLASSES[name].__doc__ or "") is not None,
    ),
    Place(
        "src/agent_mux/events/union.py",
        "the union `AgentEvent`, the constant in `AgentEventType`, and the literal in `EventName`",
        lambda name: CLASSES[name] in ALL_EVENTS and name in set(AgentEventType) & set(get_args(EventName)),
    ),
    Place("src/agent_mux/events/__init__.py", "the export", lambda name: CLASSES[name].__name__ in events.__all__),
    Place("src/agent_mux/events/guards.py", "its category", lambda name: category_of(name) is not None),
    Place(
        "src/agent_mux/run/event_overloads.py",
        "its two overloads",
        lambda name: text_of("src/agent_mux/run/event_overloads.py").count(f'Literal["{name}", ') == 2,
    ),
    Place("docs/spec/events.md", "its rules, and its row in section 29", in_specification),
    Place(
        "tests/unit/events/spec_events.json",
        "its fields and its category",
        lambda name: name in SPECIFIED["events"] and any(name in group["types"] for group in SPECIFIED["categories"]),
    ),
    Place(
        "src/agent_mux/contract/run.py",
        "the rule for its position, or WITHOUT_POSITION in test_event_recipe.py",
        lambda name: name in _IN_TURN_RULES or name in _BEFORE_TURNS_RULES or name in WITHOUT_POSITION,
    ),
    Place("tests/unit/contract/", "a conforming stream with it", lambda name: name in IN_STREAMS),
    Place(
        "src/agent_mux/assembler/", "the code that emits it", lambda name: uses_class("src/agent_mux/assembler", name)
    ),
    Place(
        "src/agent_mux/api/event_lines.py",
        "its line of text, or WITHOUT_LINE in test_event_recipe.py",
        lambda name: name in _SUMMARIES or name in WITHOUT_LINE,
    ),
    Place(
        "src/agent_mux/acp_server/updates.py",
        "its update for editors, or NO_UPDATE",
        lambda name: CLASSES[name] in RunUpdates("/")._handlers or CLASSES[name] in NO_UPDATE,
    ),
    Place(
        "adapters/agent_mux_adapters/_dialects/agent_events/",
        "its facts, for programs that print our events",
        lambda name: uses_class("adapters/agent_mux_adapters/_dialects/agent_events", name),
    ),
    Place(
        "fixtures/",
        "a recording with it that an adapter claims in `emits`, or FROM_NO_AGENT in test_event_recipe.py",
        lambda name: name in CLAIMED or name in FROM_NO_AGENT,
    ),
    Place(
        "docs/reference/",
        "its section in the generated pages (`make docs`)",
        lambda name: (
            f"### `{name}`" in text_of("docs/reference/events.md")
            and f'"{name}"' in text_of("docs/reference/openapi.json")
        ),
    ),
)


def test_every_event_is_known_in_every_place() -> None:
    check_places("event", CLASSES, PLACES)


def test_exceptions_are_still_exceptions() -> None:
    assert set(CLASSES) >= WITHOUT_POSITION | WITHOUT_LINE | FROM_NO_AGENT
    assert WITHOUT_POSITION.isdisjoint({*_IN_TURN_RULES, *_BEFORE_TURNS_RULES})
    assert WITHOUT_LINE.isdisjoint(_SUMMARIES)
    assert FROM_NO_AGENT.isdisjoint(CLAIMED)


def test_totals_in_the_specification_are_counted() -> None:
    table = text_of("docs/spec/events.md").partition("## 29. Categories")[2]
    rows = re.findall(r"^\| \d+ \| (\w+) \| (\d+) \| (.+) \|$", table, re.MULTILINE)
    assert {name: int(count) for name, count, _ in rows} == {name: len(kinds) for name, kinds in CATEGORIES.items()}
    assert all(int(count) == len(re.findall(r"`\w+`", types)) for _, count, types in rows)
    assert f"| | total | {len(ALL_EVENTS)} | |" in table


def test_recipe_names_the_places() -> None:
    assert paths_on_page("event") == [place.path for place in PLACES]
