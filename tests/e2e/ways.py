"""What scenarios are run with: both event loops, and both native protocols of an agent."""

from typing import Any

import pytest

from agent_mux import Approve

ALL_AGENTS = pytest.mark.all_agents
"""A scenario for all agents, not only for those that are tested most."""
CORE = pytest.mark.core
"""What an agent is for: CI drives every agent through these, and those that are tested most through all."""
ON_BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

TWO_WAY: dict[str, Any] = {"on_approval_request": lambda _: Approve()}
"""Nothing is refused, as in a one-shot, but somebody could: the agent's richer protocol."""
WAYS: dict[str, dict[str, Any]] = {"one_shot": {}, "two_way": TWO_WAY}
BOTH_WAYS = pytest.mark.parametrize("way", WAYS)

INTERACTIVE: dict[str, Any] = {"interactive": True, "approval_mode": "prompt"}
"""A run that stays open for more prompts."""
