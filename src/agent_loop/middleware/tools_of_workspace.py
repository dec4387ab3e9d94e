"""A tool that works in a workspace of its own choice, not in the agent's."""

from dataclasses import dataclass, replace
from typing import Any

from agent_loop.tools.tool import Output, Tool, ToolContext
from agent_loop.workspace import Workspace


@dataclass(frozen=True)
class WorkspaceTool:
    """The tool, bound to these files. Everything else about it is as it is."""

    tool: Tool
    workspace: Workspace

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """As the tool does."""
        return await self.tool.execute(arguments, replace(context, workspace=self.workspace))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tool, name)
