"""Agents as data: presets and their composition, the built-in agents, agent files, and a registry.

`find_agents` and `read_agent` are in `agent_loop.presets.agent_file`.
"""

from agent_loop.presets.builtin import BUILD_AGENT, DEFAULT_PERSIST_EXCLUDE_TOOLS, PLAN_AGENT
from agent_loop.presets.plan_mode import PlanMode
from agent_loop.presets.preset import Preset, compose_presets
from agent_loop.presets.registry import AgentRegistry, HookOverrides

__all__ = [
    "BUILD_AGENT",
    "DEFAULT_PERSIST_EXCLUDE_TOOLS",
    "PLAN_AGENT",
    "AgentRegistry",
    "HookOverrides",
    "PlanMode",
    "Preset",
    "compose_presets",
]
