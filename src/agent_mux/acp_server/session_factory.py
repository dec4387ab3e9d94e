"""Create sessions: check the directory, convert MCP servers and collect the available choices."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.abc
from acp.schema import ClientCapabilities, HttpMcpServer, McpServerStdio, SseMcpServer

from agent_mux._util.logs import LOGGER
from agent_mux._util.ulids import new_ulid
from agent_mux.acp_server.choices import FIELDS, SessionChoices
from agent_mux.acp_server.chosen_values import ChosenValues
from agent_mux.acp_server.commands import find_commands
from agent_mux.acp_server.interactions import EditorConnection
from agent_mux.acp_server.session import EditorSession
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities
from agent_mux.sdk.options import McpServer


class SessionFactory:
    """Creates the sessions of one connection."""

    def __init__(self, mux: AgentMux, adapter: Adapter, fields: Mapping[str, Any], tasks: anyio.abc.TaskGroup) -> None:
        """Initialize with the arguments of `AcpAgent`."""
        self._mux = mux
        self._adapter = adapter
        self._fields = fields
        self._tasks = tasks
        self._chosen = ChosenValues(mux.journals.parent)
        self.editor: EditorConnection | None = None
        self.editor_capabilities: ClientCapabilities | None = None

    @staticmethod
    def new_id() -> str:
        """Return an id for a new session; see `stored_sessions`."""
        return new_ulid()

    async def store_choices(self, session: EditorSession) -> None:
        """Remember the choices of a session for `session/load`."""
        values = dict(session.choices.chosen)
        await anyio.to_thread.run_sync(self._chosen.store, self._adapter.agent, session.session_id, values)

    async def open(
        self,
        session_id: str,
        cwd: str,
        servers: Sequence[Any] | None,
        *,
        chosen_for: str | None = None,
        **origin: Any,
    ) -> EditorSession:
        """Create a session that is ready for its first prompt, with the stored choices of it, or of `chosen_for`.

        Raises `ValidationError` for an invalid directory, AGENT_NOT_INSTALLED, and errors of configuration files.
        """
        _check_directory(cwd)
        fields = {**self._fields, "cwd": cwd}
        resolved = self._mux.resolve_options(**fields).options
        find_executable(self._adapter, {**os.environ, **resolved.env}, resolved.command)
        fields["mcp_servers"] = self._servers(servers, resolved.mcp_servers) or None
        assert self.editor is not None  # noqa: S101  # only a connected editor can request a session
        models = await anyio.to_thread.run_sync(self._models)
        commands = await anyio.to_thread.run_sync(find_commands, self._mux.adapters, self._adapter.agent, cwd)
        choices = SessionChoices(
            self._adapter.capabilities,
            [(model.model_id, model.display_name or model.model_id) for model in models],
            {name: getattr(resolved, name) for name in FIELDS.values()},
        )
        choices.restore(
            await anyio.to_thread.run_sync(self._chosen.read, self._adapter.agent, chosen_for or session_id)
        )
        return EditorSession(
            session_id=session_id,
            mux=self._mux,
            adapter=self._adapter,
            editor=self.editor,
            editor_capabilities=self.editor_capabilities,
            tasks=self._tasks,
            fields={name: value for name, value in fields.items() if value is not None},
            choices=choices,
            commands=commands,
            context_window_of=lambda name: _context_window(models, name or self._adapter.default_model),
            **origin,
        )

    def _models(self) -> tuple[ModelCapabilities, ...]:
        try:
            return tuple(self._mux.models.list(self._adapter.agent))
        except AgentMuxError as error:  # the choice is omitted; the agent has a default
            logging.getLogger(LOGGER).warning("the choice of models is not available: %s", error)
            return ()

    def _servers(self, offered: Sequence[Any] | None, own: Sequence[McpServer]) -> tuple[McpServer, ...]:
        """Merge the servers of the editor and of the command line.

        Editors send their servers to every agent. An agent without MCP support ignores them, with a warning.
        """
        if offered and not self._adapter.capabilities.mcp:
            names = ", ".join(repr(one.name) for one in offered)
            logging.getLogger(LOGGER).warning(
                "%s does not support MCP servers; ignored: %s", self._adapter.agent, names
            )
            return tuple(own)
        return merge_servers(offered, own)


def _check_directory(cwd: str) -> None:
    if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
        raise ValidationError([FieldError("cwd", cwd, "an absolute path of an existing directory")])


def _context_window(models: Sequence[ModelCapabilities], name: str | None) -> int | None:
    return next((model.context_window for model in models if name in {model.model_id, model.alias}), None)


LONGEST_SERVER_NAME = 64  # characters, the limit of agents
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


def merge_servers(offered: Sequence[Any] | None, own: Iterable[McpServer] = ()) -> tuple[McpServer, ...]:
    """Merge servers of the command line (`own`) and of the editor, with valid and unique names.

    Raises `ValidationError` for an unsupported kind of server.
    """
    servers = {server.name: server for server in own}
    for one in offered or ():
        server = _convert_server(
            _unused_name(_INVALID_CHARACTERS.sub("_", one.name)[:LONGEST_SERVER_NAME] or "server", servers), one
        )
        servers[server.name] = server
    return tuple(servers.values())


def _convert_server(name: str, offered: Any) -> McpServer:
    match offered:
        case McpServerStdio():
            env = {variable.name: variable.value for variable in offered.env}
            return McpServer(name, command=offered.command, args=tuple(offered.args), env=env)
        case HttpMcpServer() | SseMcpServer():
            transport: Literal["sse", "streamable-http"] = "sse" if offered.type == "sse" else "streamable-http"
            headers = {header.name: header.value for header in offered.headers}
            return McpServer(name, transport=transport, url=offered.url, headers=headers)
    raise ValidationError([FieldError("mcpServers", getattr(offered, "name", "?"), "stdio, http or sse servers")])


def _unused_name(name: str, taken: Iterable[str]) -> str:
    names, number, free = set(taken), 1, name
    while free in names:
        number += 1
        free = f"{name[: LONGEST_SERVER_NAME - len(str(number)) - 1]}-{number}"
    return free
