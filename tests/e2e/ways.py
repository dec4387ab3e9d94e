"""Markers and parameters of scenarios: event loops, native protocols, and the agents that run them."""

from typing import Any

import pytest

from agent_mux import Approve

ALL_AGENTS = pytest.mark.all_agents
"""A scenario for all agents, not only for the fully tested ones."""
CORE = pytest.mark.core
"""A basic scenario: CI runs these with every agent, and all scenarios with the fully tested agents."""
HEAVY = pytest.mark.heavy
"""A scenario of many runs or much data, which CI leaves out."""
ON_BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

TWO_WAY: dict[str, Any] = {"on_approval_request": lambda _: Approve()}
"""Approve everything, as in a one-shot run, but over the two-way protocol of the agent."""
WAYS: dict[str, dict[str, Any]] = {"one_shot": {}, "two_way": TWO_WAY}
BOTH_WAYS = pytest.mark.parametrize("way", WAYS)

INTERACTIVE: dict[str, Any] = {"interactive": True, "approval_mode": "prompt"}
"""Options of a run that stays open for more prompts."""
