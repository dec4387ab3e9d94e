"""`amux-agent mcp`: list, add and remove the MCP servers of all sessions, of the user or of the project."""

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent_loop.cli.errors import UsageError
from agent_loop.cli.parsing import CommandParser
from agent_loop.cli.printing import print_text
from agent_mux._util.sanitize import one_line
from agent_mux.agents.config.changes import hide_secrets
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers, StoredServer
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.config import Scope
from agent_mux.sdk.options import McpServer

AGENT = "native"
"""The name under which agent-mux knows this agent and its files."""
MAX_TARGET = 200
"""The most characters of a command or URL in the list."""
_SCOPES: tuple[Scope, ...] = ("global", "project")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _parser() -> CommandParser:
    parser = CommandParser(prog="amux-agent mcp", description="MCP servers of all sessions.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|add|remove")
    commands.add_parser("list", help="list the servers, and why one is not used")
    add = commands.add_parser(
        "add",
        help="add a server: a program or a URL",
        usage="amux-agent mcp add NAME [flags] (-- COMMAND [ARG...] | --url URL)",
        epilog="${NAME} and ${NAME:-DEFAULT} in a value are replaced when a session starts the server.",
        allow_abbrev=False,
    )
    add.add_argument("name", metavar="NAME")
    add.add_argument("--url", help="URL of the server, instead of the command of a program")
    add.add_argument("--sse", action="store_true", help="use the SSE transport for the URL")
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="variable for the program; without =VALUE, that of each session: the file then has no secret",
    )
    add.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="HTTP header")
    add.add_argument("--force", action="store_true", help="replace a server of this name")
    remove = commands.add_parser("remove", help="remove a server", allow_abbrev=False)
    remove.add_argument("name", metavar="NAME")
    for command, default in ((add, "global"), (remove, None)):
        command.add_argument(
            "--scope",
            choices=_SCOPES,
            default=default,
            help="global: settings.json, for you; project: .mcp.json, for everybody in this directory"
            + (" (default: global)" if default else " (default: the one that is used)"),
        )
    return parser


def manage_servers(argv: Sequence[str]) -> int:
    """Carry out one command and return the exit code. Raises `UsageError`, also if a file cannot be changed."""
    separator = argv.index("--") if "--" in argv else len(argv)
    parsed = _parser().parse_args(list(argv[:separator]))
    program = list(argv[separator + 1 :])
    if program and parsed.command != "add":
        raise UsageError(f"`amux-agent mcp {parsed.command}` takes no command after --")
    servers = McpServers(InstallationResolver(environ=os.environ, project=Path.cwd()))
    try:
        match parsed.command:
            case "list":
                lines = list(_list_lines(servers.list(AGENT)))
            case "add":
                server = _server_of(parsed, program)
                change = servers.add(AGENT, server, scope=parsed.scope, force=parsed.force)
                lines = [f"added {parsed.name} to {change.path}", *_problems(servers, parsed.name, parsed.scope)]
            case _:
                lines = [f"removed {parsed.name} from {servers.remove(AGENT, parsed.name, scope=parsed.scope).path}"]
    except AgentMuxError as error:
        raise UsageError(str(error)) from None
    print_text("".join(f"{line}\n" for line in lines))
    return 0


def _server_of(parsed: argparse.Namespace, program: list[str]) -> McpServer:
    """Return the server that the arguments of `add` describe. Raises `UsageError`."""
    if bool(program) == (parsed.url is not None):
        raise UsageError("pass either a command, after --, or --url")
    if parsed.url is None:
        if parsed.header or parsed.sse:
            raise UsageError("--header and --sse need --url")
        env = dict(_pairs("--env", parsed.env))
        return McpServer(parsed.name, command=program[0], args=tuple(program[1:]), env=env)
    if parsed.env:
        raise UsageError("--env needs a command, after --")
    headers = dict(_pairs("--header", parsed.header))
    return McpServer(parsed.name, "sse" if parsed.sse else "streamable-http", url=parsed.url, headers=headers)


def _pairs(flag: str, given: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values. A variable without a value is replaced when a session starts the server."""
    for word in given:
        name, sign, value = word.partition("=")
        is_reference = not sign and flag == "--env" and _VARIABLE.fullmatch(name) is not None
        if not name or not (sign or is_reference):
            raise UsageError(f"{flag} needs NAME=VALUE{' or NAME' if flag == '--env' else ''}; got {name!r}")
        yield name, value if sign else f"${{{name}}}"


def _problems(servers: McpServers, name: str, scope: Scope) -> list[str]:
    """Return why the agent does not use a server that was added."""
    return [f"not used: {one.problem}" for one in servers.list(AGENT, scope=scope) if one.name == name and one.problem]


def _list_lines(stored: Sequence[StoredServer]) -> Iterator[str]:
    """Yield one line for each server: name, scope, transport, command or URL, and why it is not used."""
    if not stored:
        yield "no MCP servers; add one: amux-agent mcp add NAME -- COMMAND"
    names = [one_line(each.name, MAX_TARGET) for each in stored]
    width = max(map(len, names), default=0)
    for name, each in zip(names, stored, strict=True):
        reason = _reason(each)
        suffix = f"  (not used: {reason})" if reason else ""
        transport = each.server.transport if each.server is not None else "?"
        yield f"{name:{width}}  {each.scope:7}  {transport:15}  {_target(each.server)}{suffix}"


def _target(server: McpServer | None) -> str:
    """Return the command or the URL of a server without its secrets."""
    if server is None:
        return ""
    words = [server.url] if server.command is None else [server.command, *server.args]
    return one_line(" ".join(hide_secrets(words)), MAX_TARGET)


def _reason(stored: StoredServer) -> str | None:
    """Return why the agent does not use a server; None: it does."""
    if stored.problem is not None:
        return stored.problem
    if stored.server is None:
        return f"its entry in {stored.path} has neither a command nor a URL"
    if not stored.enabled:
        return "disabled"
    return None if stored.wins else "another server of this name takes precedence"
