"""Whose tool it is. The model sees a tool of an MCP server as `<server>_<tool>`."""

import re
from collections.abc import Iterable

SHELL_TOOL = "bash"
TASK_TOOL = "task"
INVALID_TOOL = "invalid"
"""Stands for a tool that is not there, or whose input does not fit; its own input tells which and why."""

BUILT_IN = frozenset({
    SHELL_TOOL, TASK_TOOL, INVALID_TOOL, "StructuredOutput", "apply_patch", "codesearch", "edit", "execute", "glob",
    "grep", "list", "lsp", "multiedit", "patch", "plan_enter", "plan_exit", "question", "read", "skill", "todoread",
    "todowrite", "webfetch", "websearch", "write",
})  # fmt: skip
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


class Names:
    """Tells tools of MCP servers from others."""

    def __init__(self) -> None:
        self._servers: dict[str, str] | None = None

    def know_servers(self, servers: Iterable[str]) -> None:
        """OpenCode says which MCP servers there are."""
        self._servers = {f"{_OTHER.sub('_', server)}_": server for server in servers}

    def mcp(self, tool: str) -> tuple[str, str] | None:
        """Server and tool; None for a tool that is no MCP server's.

        Where nobody said which servers there are, a server's name is what stands before the first underscore.
        """
        if tool in BUILT_IN:
            return None
        if self._servers is None:
            server, _, name = tool.partition("_")
            return (server, name) if server and name else None
        fitting = [prefix for prefix in self._servers if tool.startswith(prefix) and len(tool) > len(prefix)]
        prefix = max(fitting, key=len, default=None)
        return None if prefix is None else (self._servers[prefix], tool[len(prefix) :])
