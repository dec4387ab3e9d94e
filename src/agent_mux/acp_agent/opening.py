"""How a session begins: where, with what servers, and with what there is to choose."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from acp.schema import ClientCapabilities
from ulid import ULID

from agent_mux.acp_agent.asking import Editor
from agent_mux.acp_agent.choices import FIELDS, Choices
from agent_mux.acp_agent.servers import servers_of
from agent_mux.acp_agent.session import Session
from agent_mux.adapter import Adapter
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.models import ModelCapabilities
from agent_mux.options import McpServer
from agent_mux.run.plan import find_executable
from agent_mux.telemetry.logs import LOGGER


class Opening:
    """Opens the sessions of one connection."""

    def __init__(self, mux: AgentMux, adapter: Adapter, fields: Mapping[str, Any], tasks: anyio.abc.TaskGroup) -> None:
        """Arguments as for `AcpAgent`."""
        self._mux = mux
        self._adapter = adapter
        self._fields = fields
        self._tasks = tasks
        self.editor: Editor | None = None
        self.editor_can: ClientCapabilities | None = None

    @staticmethod
    def new_id() -> str:
        """For a session that is new: see `names`."""
        return str(ULID())

    async def open(self, session_id: str, cwd: str, servers: Sequence[Any] | None, **origin: Any) -> Session:
        """A session that is ready for its first prompt.

        Raises `ValidationError` for a directory that is none; AGENT_NOT_INSTALLED; and what the files of ours say.
        """
        _check_directory(cwd)
        fields = {**self._fields, "cwd": cwd}
        settled = self._mux.settled(**fields).options
        find_executable(self._adapter, {**os.environ, **settled.env}, settled.command)
        fields["mcp_servers"] = self._servers(servers, settled.mcp_servers) or None
        assert self.editor is not None  # noqa: S101  # there is nobody else who could ask for a session
        models = await anyio.to_thread.run_sync(self._models)
        return Session(
            session_id=session_id,
            mux=self._mux,
            adapter=self._adapter,
            editor=self.editor,
            editor_can=self.editor_can,
            tasks=self._tasks,
            fields={name: value for name, value in fields.items() if value is not None},
            choices=Choices(
                self._adapter.capabilities,
                [(model.model_id, model.display_name or model.model_id) for model in models],
                {name: getattr(settled, name) for name in FIELDS.values()},
            ),
            window_of=lambda name: _window(models, name or self._adapter.default_model),
            **origin,
        )

    def _models(self) -> tuple[ModelCapabilities, ...]:
        try:
            return tuple(self._mux.models.list(self._adapter.agent))
        except AgentMuxError as error:  # a choice less; the agent has its own default
            logging.getLogger(LOGGER).warning("there is no choice of models: %s", error)
            return ()

    def _servers(self, told: Sequence[Any] | None, own: Sequence[McpServer]) -> tuple[McpServer, ...]:
        """Editors send their servers to every agent: to one that takes none they are no reason to refuse."""
        if told and not self._adapter.capabilities.mcp:
            names = ", ".join(repr(one.name) for one in told)
            logging.getLogger(LOGGER).warning("%s takes no MCP servers: %s left out", self._adapter.agent, names)
            return tuple(own)
        return servers_of(told, own)


def _check_directory(cwd: str) -> None:
    if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
        raise ValidationError([FieldError("cwd", cwd, "an absolute path of an existing directory")])


def _window(models: Sequence[ModelCapabilities], name: str | None) -> int | None:
    return next((model.context_window for model in models if name in {model.model_id, model.alias}), None)
