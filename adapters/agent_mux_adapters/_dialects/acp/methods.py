"""The methods of the protocol that an agent may call, and which of them we offer."""

_PROTOCOL = ("session/", "fs/", "terminal/", "elicitation/", "mcp/", "$/")
NOT_OFFERED = {
    "fs/read_text_file": "not announced: the agent has the same disk",
    "fs/write_text_file": "not announced: the agent has the same disk",
    "mcp/connect": "not announced: MCP servers are the agent's to connect to",
    "mcp/disconnect": "not announced: MCP servers are the agent's to connect to",
    "mcp/message": "not announced: MCP servers are the agent's to connect to",
    "terminal/create": "not announced: the agent runs its own commands",
    "terminal/kill": "not announced: the agent runs its own commands",
    "terminal/output": "not announced: the agent runs its own commands",
    "terminal/release": "not announced: the agent runs its own commands",
    "terminal/wait_for_exit": "not announced: the agent runs its own commands",
}
"""Requests that are known and refused, and why."""


def is_extension(method: str) -> bool:
    """It is not of the protocol. Such names should begin with an underscore, but not all agents know that."""
    return not method.startswith(_PROTOCOL)
