"""The built-in agents: one that plans, and one that builds."""

from agent_loop.behavior import Behavior
from agent_loop.presets.preset import Preset

DEFAULT_PERSIST_EXCLUDE_TOOLS = frozenset({"ask_user", "delegate", "present_plan", "read_file", "write_todos"})
"""Tools whose results stay in the context, however large: reads have pages, and a stub of a read would be read again;
the others return words of the user, a report, or a short confirmation."""
_BEHAVIOR = Behavior(persist_exclude_tools=DEFAULT_PERSIST_EXCLUDE_TOOLS)

BUILD_AGENT = Preset(
    name="build",
    description="Carry out a task: read, change files, run commands and check the result.",
    behavior=_BEHAVIOR,
)
"""The agent that does the work: all tools, as the approvals of the program allow."""
PLAN_AGENT = Preset(
    name="plan",
    description="Explore first and present a plan, which the user accepts or rejects; then carry it out.",
    mode="plan",
    behavior=_BEHAVIOR,
)
"""The agent that reads, presents a plan with `present_plan`, and goes on as `BUILD_AGENT` once the user accepts it."""
BUILT_IN = (BUILD_AGENT, PLAN_AGENT)
