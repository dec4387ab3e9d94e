"""The page states for each agent how hook functions are called, as the code decides it."""

import re
from pathlib import Path

import pytest

from agent_mux.client.hook_selection import function_hook_support
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.hooks import HOOK_TYPES, HookType
from agent_mux.sdk.registry import AdapterRegistry

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "hooks-and-tools-in-python.md"
NAMED: tuple[HookType, ...] = ("pre_tool_use", "permission_request", "pre_compact")
"""The types with a column of their own."""
AGENTS = [adapter for adapter in AdapterRegistry() if adapter.agent != "replay"]


def rows() -> dict[str, tuple[str, ...]]:
    """Return the cells of the table of hooks by agent."""
    table = PAGE.read_text("utf-8").partition("## Hooks")[2]
    found = re.findall(r"^\| ([a-z, ]+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", table, re.MULTILINE)
    return {agent: tuple(cells) for agents, *cells in found for agent in agents.split(", ") if agent != "agent"}


@pytest.mark.parametrize("adapter", AGENTS, ids=lambda adapter: adapter.agent)
def test_page_has_the_support_of_every_agent(adapter: Adapter) -> None:
    named = [function_hook_support(adapter, name) or "-" for name in NAMED]
    others = {function_hook_support(adapter, name) or "-" for name in HOOK_TYPES if name not in NAMED}
    assert rows()[adapter.agent] == (*named, *others)


def test_every_agent_of_the_page_exists() -> None:
    assert set(rows()) == {adapter.agent for adapter in AGENTS}
