"""`amux mcp-server`: MCP tools with which one agent starts, watches and answers runs of other agents, within limits.

The MCP servers that are configured for agents are managed by `agent_mux.agents.mcp_servers` instead.
See docs/how-to/let-agents-delegate.md.
"""
