"""`amux mcp-server`: tools by which one agent starts, watches and answers runs of others, within limits.

Not to be confused with `agent_mux.mcp`, which is about the servers that agents keep.
See docs/how-to/delegate-to-other-agents.md.
"""
