"""Calling the file tools in tests."""

from pathlib import Path
from typing import Any

import anyio

from agent_loop.behavior import Behavior
from agent_loop.state import AgentState
from agent_loop.tools.builtin import file_tools
from agent_loop.tools.tool import Tool, ToolContext, ToolResult, result_of
from agent_loop.workspace import Workspace


class Files:
    """A workspace, one session, and its tools."""

    def __init__(self, root: Path, **behavior: Any) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self.state = AgentState()
        self.behavior = Behavior(**behavior)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in file_tools()}

    def context(self, name: str) -> ToolContext:
        return ToolContext(
            call_id="1", tool_name=name, state=self.state, workspace=self.workspace, behavior=self.behavior
        )

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        with anyio.fail_after(60):
            return result_of(await self.tools[name].execute(arguments, self.context(name)))

    async def text(self, name: str, **arguments: Any) -> str:
        return (await self.call(name, **arguments)).text

    def put(self, name: str, content: bytes | str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def get(self, name: str) -> bytes:
        return (self.root / name).read_bytes()
