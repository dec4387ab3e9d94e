"""`amux mcp`: MCP servers in the agents' own configuration files."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import print_rows
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.installation_options import (
    AgentName,
    AnyScope,
    Cwd,
    DryRun,
    Force,
    Scope,
    ScopeName,
    homes_for,
    scope_value,
    show_change,
)

if TYPE_CHECKING:
    from agent_mux.agents.mcp_servers import McpServers, StoredServer
    from agent_mux.sdk.options import McpServer


mcp = typer.Typer(help="MCP servers in the agents' configuration.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Server name.", show_default=False)]


@mcp.command("list")
@with_common_flags
def list_servers(context: typer.Context, agent: AgentName, scope: AnyScope = None, cwd: Cwd = None) -> int:
    """List an agent's MCP servers. Values of variables and headers are hidden."""
    found = _mcp_servers(cwd).list(agent, scope=scope_value(scope))
    rows = [_json_row(one) if context.obj.json else _table_row(one) for one in found]
    print_rows(
        rows, ("name", "scope", "transport", "target", "state"), context.obj, empty=f"{agent} has no MCP servers"
    )
    return 0


@mcp.command("add")
@with_common_flags
def add(
    context: typer.Context,
    agent: AgentName,
    name: Name,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND [ARGS]...]", help="Program that runs the server.", show_default=False),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Server URL (instead of COMMAND).", show_default=False)
    ] = None,
    sse: Annotated[bool, typer.Option("--sse", help="Use the SSE transport for the URL.", show_default=False)] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="Environment variable; without =VALUE, copied from here.",
            show_default=False,
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME[=VALUE]",
            help="HTTP header; without =VALUE, copied from the environment.",
            show_default=False,
        ),
    ] = None,
    scope: Scope = ScopeName.everywhere,
    cwd: Cwd = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> int:
    """Add an MCP server to an agent: a program or a URL."""
    server = _make_server(
        name, command or [], url, sse=sse, env=_parse_pairs("--env", env), headers=_parse_pairs("--header", header)
    )
    change = _mcp_servers(cwd).add(agent, server, scope=scope_value(scope), force=force, dry_run=dry_run)
    show_change(change, context.obj, dry_run=dry_run)
    return 0


@mcp.command("remove")
@with_common_flags
def remove(
    context: typer.Context,
    agent: AgentName,
    name: Name,
    scope: AnyScope = None,
    cwd: Cwd = None,
    dry_run: DryRun = False,
) -> int:
    """Remove an MCP server (effective one, or from --scope)."""
    change = _mcp_servers(cwd).remove(agent, name, scope=scope_value(scope), dry_run=dry_run)
    show_change(change, context.obj, dry_run=dry_run)
    return 0


def _mcp_servers(cwd: Path | None) -> "McpServers":
    from agent_mux.agents.mcp_servers import McpServers

    return McpServers(homes_for(cwd))


def _make_server(
    name: str, words: list[str], url: str | None, *, sse: bool, env: dict[str, str], headers: dict[str, str]
) -> "McpServer":
    from agent_mux.cli.errors import usage_error
    from agent_mux.sdk.options import McpServer

    if bool(words) == (url is not None):
        raise usage_error("give either a command (after --) or --url")
    if url is None:
        if headers or sse:
            raise usage_error("--header and --sse require --url")
        return McpServer(name, command=words[0], args=tuple(words[1:]), env=env)
    if env:
        raise usage_error("--env requires a command")
    return McpServer(name, "sse" if sse else "streamable-http", url=url, headers=headers)


def _parse_pairs(flag: str, given: Iterable[str] | None) -> dict[str, str]:
    from agent_mux.cli.errors import usage_error

    pairs = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not name or (not sign and name not in os.environ):
            raise usage_error(f"{flag} expects NAME=VALUE, or NAME of a variable that is set here; got {name!r}")
        pairs[name] = value if sign else os.environ[name]
    return pairs


def _table_row(one: "StoredServer") -> dict[str, Any]:
    server = one.server
    state = "" if one.enabled else "disabled"
    state = one.problem or (state if one.wins else "overridden by another server of this name")
    if server is None:
        return {"name": one.name, "scope": one.scope, "state": f"not understood; see {one.path}"}
    from agent_mux.agents.config.changes import hide_secrets

    target = (
        " ".join([server.command or "", *hide_secrets(list(server.args))])
        if server.command
        else hide_secrets(server.url)
    )
    return {"name": one.name, "scope": one.scope, "transport": server.transport, "target": target, "state": state}


def _json_row(one: "StoredServer") -> dict[str, Any]:
    from agent_mux.agents.config.changes import hide_secrets
    from agent_mux.redaction import HIDDEN

    server = one.server
    shown: dict[str, Any] = {
        "agent": one.agent, "name": one.name, "scope": one.scope, "path": str(one.path), "enabled": one.enabled,
        "wins": one.wins, "problem": one.problem, "understood": server is not None,
    }  # fmt: skip
    if server is None:
        return shown
    if server.command is not None:
        program = {"command": server.command, "args": hide_secrets(list(server.args))}
        return {**shown, "transport": server.transport, **program, "env": dict.fromkeys(server.env, HIDDEN)}
    place = {"url": hide_secrets(server.url), "headers": dict.fromkeys(server.headers, HIDDEN)}
    return {**shown, "transport": server.transport, **place}
