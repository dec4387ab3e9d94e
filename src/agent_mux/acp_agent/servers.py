"""The MCP servers of the editor, for the runs of a session. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from acp.schema import HttpMcpServer, McpServerStdio, SseMcpServer

from agent_mux.errors import FieldError, ValidationError
from agent_mux.options import McpServer

LONGEST_NAME = 64  # characters: what agents take
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def servers_of(told: Sequence[Any] | None, own: Iterable[McpServer] = ()) -> tuple[McpServer, ...]:
    """Those of the command line (`own`) and those of the editor, each under a name that agents take.

    Raises `ValidationError` for a kind that agents cannot reach.
    """
    servers = {server.name: server for server in own}
    for one in told or ():
        server = _server(_free(_ODD.sub("_", one.name)[:LONGEST_NAME] or "server", servers), one)
        servers[server.name] = server
    return tuple(servers.values())


def _server(name: str, told: Any) -> McpServer:
    match told:
        case McpServerStdio():
            env = {variable.name: variable.value for variable in told.env}
            return McpServer(name, command=told.command, args=tuple(told.args), env=env)
        case HttpMcpServer() | SseMcpServer():
            transport: Literal["sse", "streamable-http"] = "sse" if told.type == "sse" else "streamable-http"
            headers = {header.name: header.value for header in told.headers}
            return McpServer(name, transport=transport, url=told.url, headers=headers)
    raise ValidationError([FieldError("mcpServers", getattr(told, "name", "?"), "stdio, http and sse servers")])


def _free(name: str, taken: Iterable[str]) -> str:
    names, number, free = set(taken), 1, name
    while free in names:
        number += 1
        free = f"{name[: LONGEST_NAME - len(str(number)) - 1]}-{number}"
    return free
