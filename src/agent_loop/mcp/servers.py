"""The configuration of MCP servers. Reprs and messages contain none of their secrets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, get_args

from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError
from agent_loop.tools.toolset import NAME

Transport = Literal["stdio", "sse", "streamable-http"]
Disclosure = Literal["eager", "lazy"]
INSTALL = 'pip install "agent-mux[mcp]"'
REDACTED = "[redacted]"
MIN_SECRET = 6
"""Characters of the shortest value that is removed from messages; shorter ones occur in ordinary text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer(Checked):
    """An MCP server whose tools an agent uses: a program that the agent starts, or a URL."""

    name: str
    """1 to 64 letters, digits, _ or -. The name of its tool `x` is `name__x`."""
    transport: Transport = "stdio"
    command: str | None = None
    """The program of a "stdio" server."""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the program, besides HOME, LOGNAME, PATH, SHELL, TERM and USER. It inherits no others."""
    cwd: str | None = None
    """The directory of the program; None: that of this process."""
    url: str | None = field(default=None, repr=False)
    """The URL of a server with any other transport."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """HTTP headers of all requests to the server."""
    connect_timeout: float = 30.0
    """Seconds in which the server must start and list its tools."""
    timeout: float | None = 300.0
    """Seconds for one tool call; None: no limit."""
    honor_read_only: bool = False
    """Whether tools that the server declares as read-only are treated as such: they need no approval and run
    concurrently. The declaration is the server's own, so only for servers that you trust.
    """
    disclosure: Disclosure | None = None
    """Whether the model gets the definitions of its tools at once, or after a search; None: as the behavior states."""
    prefix: str | None = None
    """The prefix of the names of its tools; None: its name."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """Further values that messages must not contain, for example those in `args`."""

    def tool_name(self, tool: str) -> str:
        """Return the canonical name of one of the server's tools."""
        return f"{self.name if self.prefix is None else self.prefix}__{tool}"

    def without_secrets(self, text: str) -> str:
        """Return a message without the server's variables, headers, URL and further secrets."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return text

    def _secrets(self) -> set[str]:
        values = [*self.env.values(), *self.headers.values(), self.url or "", *self.secrets]
        parts = [part for value in self.headers.values() for part in value.split()]  # "Bearer TOKEN"
        return {value for value in (*values, *parts) if len(value) > MIN_SECRET}


def check_servers(servers: Iterable[McpServer]) -> tuple[McpServer, ...]:
    """Return the servers. Raises `ConfigurationError` for invalid ones, and if the MCP SDK is not installed."""
    checked = tuple(servers)
    for each in checked:
        if not isinstance(each, McpServer):
            raise ConfigurationError(f"{each!r} is not an MCP server; pass McpServer(name=..., command=...)")
    if checked and find_spec("mcp") is None:
        raise ConfigurationError(f"MCP servers need the package mcp, which is not installed; try: {INSTALL}")
    names: set[str] = set()
    for server in checked:
        problem = problem_of(server)
        if problem is None and server.name in names:
            problem = "has the name of another server; rename one of them"
        if problem is not None:
            raise ConfigurationError(f"the MCP server {server.name!r} {problem}")
        names.add(server.name)
    return checked


def problem_of(server: McpServer) -> str | None:
    """Return what is wrong with a server, as the rest of a sentence about it; None if it is valid."""
    is_program = server.transport == "stdio"
    has_url = (server.url or "").startswith(("http://", "https://"))
    rules = [
        (not NAME.fullmatch(server.name), "has an invalid name: use 1 to 64 letters, digits, _ and -"),
        (server.prefix is not None and not NAME.fullmatch(server.prefix), "has an invalid prefix"),
        (is_program and not server.command, 'has no command, which the transport "stdio" starts'),
        (is_program and bool(server.url), f"has a URL; use the transport {' or '.join(get_args(Transport)[1:])}"),
        (not is_program and not has_url, "needs a URL with http or https"),
        (server.connect_timeout <= 0, "needs a connect_timeout of more than 0 seconds"),
        (server.timeout is not None and server.timeout <= 0, "needs a timeout of more than 0 seconds"),
    ]  # fmt: skip
    return next((problem for is_violated, problem in rules if is_violated), None)
