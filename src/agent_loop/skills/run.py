"""The skills in one run: the catalog and the instructions in its requests, the tools, and the gate."""

from collections.abc import Sequence
from typing import Any

from agent_loop.errors import error_text
from agent_loop.events import HookFailed
from agent_loop.hooks.contexts import BeforeAgent, LoopEnded, ToolGate, TransformContext, TransformSystem
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.run import SKILL_TOOLS, USE_SKILL, LoopRun
from agent_loop.messages import Message
from agent_loop.skills.allowed import is_allowed
from agent_loop.skills.host import SkillHost
from agent_loop.skills.tools import skill_tools
from agent_loop.tools.builtin.shell import ShellTool

HOW_TO_USE = (
    "Skills are instructions for certain kinds of work. Where one fits what you are asked to do, call {use} with its "
    "name before you begin, and follow what it returns."
)
ACTIVE = "These skills are active, and earlier messages do not contain their instructions. Follow them:"


class SkillRun:
    """Adds a scope of hooks to a run, before all others: nobody is asked about a call that a skill forbids."""

    def __init__(self, host: SkillHost, run: LoopRun) -> None:
        self._host = host
        self._run = run
        self._request: TransformContext | None = None

    def install(self) -> None:
        """Add the scope. Call it before the built-in gates are added."""
        hooks = Hooks()
        hooks.on("agent:before", self._begin)
        hooks.on("context:transform", self._keep_request)
        hooks.on("system:transform", self._add_instructions)
        hooks.on("tool:gate", self._gate)
        hooks.on("agent:done", self._end)
        self._run.add_policy(hooks)

    async def _begin(self, context: BeforeAgent) -> None:
        """Search the skills, add the tools, and activate what the history activated."""
        host, run = self._host, self._run
        host.run = run
        await host.resolve()
        while host.hook_failures:
            hook, error = host.hook_failures.pop(0)
            problem = f"{type(error).__name__}: {error_text(error)}"
            await run.emit(HookFailed(loop_id=run.loop_id, hook=hook, error=problem))
        context.notes.extend(host.notes)
        host.notes.clear()
        await host.report_dropped()
        if not host.skills:
            return
        shells = (tool for tool in context.tools if isinstance(tool, ShellTool))
        names = {tool.name for tool in context.tools}
        added: Sequence[Any] = skill_tools(host, next(shells, None))
        context.tools = [*context.tools, *(tool for tool in added if tool.name not in names)]
        if host.restores or run.kind is not None:
            await host.restore(run.history)

    def _keep_request(self, context: TransformContext) -> None:
        self._request = context  # later handlers change its messages

    def _add_instructions(self, context: TransformSystem) -> None:
        """Append the catalog, and the instructions of active skills that the messages of the request lack.

        The request lacks them after a compaction, and if the application activated the skill.
        """
        host = self._host
        if not host.skills:
            return
        how = HOW_TO_USE.format(use=self._run.toolset.wire(USE_SKILL))
        messages: Sequence[Message] = () if self._request is None else self._request.messages
        missing = [each.content for each in host.active.values() if not each.is_in(messages)]
        parts = [context.system, f"{host.catalog}\n\n{how}" if host.catalog else ""]
        parts += ["\n\n".join((ACTIVE, *missing))] if missing else []
        context.system = "\n\n".join(part for part in parts if part)

    def _gate(self, context: ToolGate) -> None:
        """Block calls of tools that no active skill allows, once one of them restricts the tools."""
        restricting = [each.skill for each in self._host.active.values() if each.skill.allowed_tools is not None]
        if not restricting or context.block or context.name in SKILL_TOOLS:
            return
        entries = [entry for skill in restricting for entry in skill.allowed_tools or ()]
        if is_allowed(context, entries):
            return
        names, allowed = ", ".join(skill.name for skill in restricting), ", ".join(entries) or "none"
        context.block = True
        context.reason = f"the tool {context.wire_name or context.name} is not allowed while the skill {names} is "
        context.reason += f"active; allowed: {allowed}"

    async def _end(self, _context: LoopEnded) -> None:
        await self._host.deactivate_all()
        self._host.run = None
