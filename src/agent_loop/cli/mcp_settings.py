"""The MCP servers of all sessions: `mcpServers` in the user's `settings.json` and in `.mcp.json` of the project.

The format of an entry is the one that several agents share. Servers of a project are programs that somebody else may
have chosen: they start only if the project is trusted.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_loop.cli.errors import UsageError
from agent_loop.cli.home import SETTINGS, agent_home, is_trusted_project, read_json, read_settings
from agent_loop.mcp.servers import INSTALL, McpServer, Transport, problem_of
from agent_mux._util.listing import list_names
from agent_mux._util.sanitize import one_line

PROJECT_FILE = ".mcp.json"
TABLE = "mcpServers"
MAX_NAMES = 5
"""The most names of servers in one sentence."""
MAX_NAME = 64
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}` or `${NAME:-DEFAULT}`."""
_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio", "http": "streamable-http", "streamable-http": "streamable-http", "sse": "sse",
}  # fmt: skip


class ServerEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of a file. Unknown fields, which other agents have, are ignored."""

    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    """None: a program if there is a command, otherwise a URL."""
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    disabled: bool = False
    disclosure: Literal["eager", "lazy"] | None = None
    honor_read_only: bool = False
    """Has no effect in the file of a project, which may not reduce what needs approval."""


@dataclass(frozen=True, slots=True)
class ConfiguredServers:
    """The stored MCP servers that a run starts, and a sentence about each of those that it does not."""

    servers: tuple[McpServer, ...] = ()
    notes: tuple[str, ...] = ()


def configured_servers(
    environ: Mapping[str, str], directory: Path, *, is_trusted: bool, named: Collection[str] = ()
) -> ConfiguredServers:
    """Return the stored MCP servers of a run. Those of the project take precedence over those of the user. Blocking.

    `is_trusted`: the run trusts the project, whatever the settings state. `named`: the names of servers that the run
    has itself, which take precedence. An entry that cannot be used is a note: it may be of a kind that another agent
    has. Raises `UsageError` with file and position for a file that cannot be read, unless it belongs to a project that
    is not trusted.
    """
    project, settings = directory / PROJECT_FILE, read_settings(environ)
    found: list[tuple[Path, Mapping[str, Any]]] = []
    if TABLE in settings:  # which they are not without a home directory
        path = agent_home(environ) / SETTINGS
        found.append((path, _table(path, settings)))
    notes: list[str] = []
    if project.is_file() and (is_trusted or is_trusted_project(environ, directory)):
        found.append((project, _table(project, read_json(project))))
    elif project.is_file():
        notes += _untrusted_note(project)
    entries = {name: (path, entry) for path, table in found for name, entry in table.items() if name not in named}
    readings = {name: _read_entry(name, entry, environ, directory) for name, (_, entry) in entries.items()}
    wanted = {name: reading for name, reading in readings.items() if reading is not None}
    if wanted and find_spec("mcp") is None:
        reason = f"the package mcp, which they need, is not installed; try: {INSTALL}"
        return ConfiguredServers(notes=(*notes, f"MCP servers are not started ({_names(wanted)}): {reason}"))
    started: list[McpServer] = []
    for name, reading in wanted.items():
        path = entries[name][0]
        if isinstance(reading, str):
            notes.append(f"the MCP server {one_line(name, MAX_NAME)} of {path} is not started: {reading}")
        elif path == project:
            started.append(replace(reading, honor_read_only=False))
        else:
            started.append(reading)
    return ConfiguredServers(tuple(started), tuple(notes))


def _table(path: Path, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entries in the content of a file by name. Raises `UsageError`."""
    entries = content.get(TABLE, {})
    if not isinstance(entries, dict):
        raise UsageError(f'{path}: {TABLE} is not a table of servers; use {{"NAME": {{"command": "PROGRAM"}}}}')
    return entries


def _untrusted_note(path: Path) -> list[str]:
    """Return a sentence about the servers of a project that is not trusted; nothing without any."""
    try:
        names = _table(path, read_json(path))
    except UsageError as error:
        return [f"no MCP servers of this project, which is not trusted: {error}"]
    if not names:
        return []
    note = f"the MCP servers of {PROJECT_FILE} ({_names(names)}) are not started, because the project is not trusted; "
    return [f"{note}pass --trust-project (trustProject), or name its directory in trustedProjects of settings.json"]


def _read_entry(name: str, entry: Any, environ: Mapping[str, str], directory: Path) -> McpServer | str | None:
    """Return the server of an entry, or why it cannot be started; None: it is disabled."""
    try:
        stored = msgspec.convert(entry, ServerEntry)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        field = place.rstrip("`").removeprefix(".")
        reason = f"{problem[:1].lower()}{problem[1:]}"
        return f"{field}: {reason}" if field else reason
    if stored.disabled:
        return None
    server, unset = _server_of(name, stored, environ, directory)
    if unset:
        return f"no value for {', '.join(unset)}; set the variable, or write a default: ${{{unset[0]}:-DEFAULT}}"
    fault = problem_of(server)
    return server if fault is None else f"it {fault}"


def _names(servers: Collection[str]) -> str:
    return list_names([one_line(name, MAX_NAME) for name in servers], MAX_NAMES)


def _server_of(
    name: str, stored: ServerEntry, environ: Mapping[str, str], directory: Path
) -> tuple[McpServer, list[str]]:
    """Return the server of an entry with the values of variables, and the variables that have none."""
    transport = _TRANSPORTS[stored.type or ("http" if stored.command is None and stored.url is not None else "stdio")]
    unset: dict[str, None] = {}
    secrets: list[str] = []

    def value_of(variable: re.Match[str]) -> str:
        from agent_mux.redaction import is_secret_name  # noqa: PLC0415  # most runs replace no variables

        value: str | None = environ.get(variable[1], variable[2])
        if value is None:
            unset[variable[1]] = None
        elif is_secret_name(variable[1]):
            secrets.append(value)
        return value or ""

    expand = partial(_VARIABLE.sub, value_of)
    server = McpServer(
        name=name,
        transport=transport,
        command=None if stored.command is None else expand(stored.command),
        args=[expand(each) for each in stored.args],
        env={key: expand(value) for key, value in stored.env.items()},
        cwd=str(directory),
        url=None if stored.url is None else expand(stored.url),
        headers={key: expand(value) for key, value in stored.headers.items()},
        honor_read_only=stored.honor_read_only,
        disclosure=stored.disclosure,
    )
    return replace(server, secrets=tuple(secrets)), list(unset)
