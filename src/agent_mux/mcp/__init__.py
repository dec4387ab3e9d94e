"""MCP servers in the agents' own files, in one shape. Source: run API, section 7."""
