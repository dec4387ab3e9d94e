"""What agents keep on a machine: programs, settings, credentials, MCP servers, skills, plugins and hooks."""
