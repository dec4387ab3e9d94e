"""File tools bound to a workspace, a record of written files, and truncation of long results."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

from agent_loop.context.tool_outputs import truncate_result
from agent_loop.errors import WorkspaceError
from agent_loop.hooks.contexts import BeforeAgent, LoopEnded, ToolAfter
from agent_loop.hooks.registry import Hooks, ToolRun
from agent_loop.messages import ToolCall
from agent_loop.state import AgentState
from agent_loop.tools.effects import FileDeleted, FilePatched, FileWritten
from agent_loop.tools.tool import Output, Tool, ToolContext, ToolResult
from agent_loop.workspace import Workspace

FILE_TOOLS = frozenset({"ls", "glob", "grep", "read_file", "edit", "multi_edit", "apply_patch", "write_file"})
"""Tools that bound their output themselves; their results are not truncated."""
SHELL = "shell"


class FilesystemMiddleware:
    """Registers the file tools and the shell, bound to `workspace`, except under names that are taken.

    Files that tools report as written, including custom tools, are recorded in `state.files` with their SHA-256.
    """

    name = "filesystem"

    def __init__(
        self,
        workspace: Workspace,
        *,
        tools: Iterable[Tool] | None = None,
        never_evict: Iterable[str] = FILE_TOOLS,
    ) -> None:
        self.workspace = workspace
        self._tools = None if tools is None else tuple(tools)
        self._never_evict = frozenset(never_evict)
        self._states: dict[str, AgentState] = {}

    def install(self, hooks: Hooks) -> None:
        """Register the handlers and the tool wrapper."""
        hooks.on("agent:before", self._register_tools)
        hooks.on("tool:after", self._record_effects)
        hooks.on("loop:after", self._forget_state)
        hooks.wrap_tool_call(self._truncate_result)

    def _register_tools(self, context: BeforeAgent) -> None:
        self._states[context.loop_id] = context.state
        taken_names = {tool.name for tool in context.tools}
        tools = _default_tools() if self._tools is None else self._tools
        context.tools += [WorkspaceTool(tool, self.workspace) for tool in tools if tool.name not in taken_names]

    def _forget_state(self, context: LoopEnded) -> None:
        self._states.pop(context.loop_id, None)

    async def _truncate_result(self, call: ToolCall, run: ToolRun) -> ToolResult:
        result = await run(call)
        return result if call.name in self._never_evict else truncate_result(result)

    async def _record_effects(self, context: ToolAfter) -> None:
        state = self._states.get(context.loop_id)
        if state is None:  # installed in the middle of a run
            return
        for effect in context.result.effects:
            match effect:
                case FileWritten(path=path) | FilePatched(path=path):
                    await self._record_file(state, path)
                case FileDeleted(path=path):
                    state.files.pop(path, None)
                case _:
                    continue

    async def _record_file(self, state: AgentState, path: str) -> None:
        try:
            data = await to_thread.run_sync(self.workspace.read_bytes, path)
        except WorkspaceError:  # deleted since, or a tool reported a file that it did not write
            state.files.pop(path, None)
        else:
            state.files[path] = hashlib.sha256(data).hexdigest()


def _default_tools() -> list[Tool]:
    from agent_loop.tools.builtin import default_tools  # noqa: PLC0415  # imported only if needed

    return [tool for tool in default_tools() if tool.name in FILE_TOOLS or tool.name == SHELL]


@dataclass(frozen=True)
class WorkspaceTool:
    """A tool bound to its own workspace instead of the agent's."""

    tool: Tool
    workspace: Workspace

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Execute the tool with the context's workspace replaced."""
        return await self.tool.execute(arguments, replace(context, workspace=self.workspace))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tool, name)
