"""The client for MCP servers: their tools become tools of the agent, under prefixed names."""

from agent_loop.mcp.servers import Disclosure, McpServer, Transport
from agent_loop.mcp.tools import McpTool

__all__ = ["Disclosure", "McpServer", "McpTool", "Transport"]
