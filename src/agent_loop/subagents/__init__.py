"""Sub-agents: a tool that delegates a task to a loop of its own, or to any program behind a runner."""

from agent_loop.subagents.runner import LoopRunner
from agent_loop.subagents.task import SubAgentReport, SubAgentRunner, SubAgentTask
from agent_loop.subagents.tool import SubAgentKind, SubAgentTool

__all__ = ["LoopRunner", "SubAgentKind", "SubAgentReport", "SubAgentRunner", "SubAgentTask", "SubAgentTool"]
