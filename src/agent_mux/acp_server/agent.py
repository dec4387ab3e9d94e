"""The methods of the protocol that an editor can call."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import anyio.abc
from acp import RequestError
from acp.schema import (
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    ForkSessionResponse,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ResumeSessionResponse,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from agent_mux.acp_server.capabilities import initialize_response
from agent_mux.acp_server.choices import MODE
from agent_mux.acp_server.errors import request_error, with_request_errors
from agent_mux.acp_server.interactions import EditorConnection
from agent_mux.acp_server.prompts import ImageStore, read_prompt
from agent_mux.acp_server.session import EditorSession
from agent_mux.acp_server.session_factory import SessionFactory
from agent_mux.acp_server.stored_sessions import find_native, find_stored, history_updates, list_page
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sessions.summary import SessionSummary


class AcpAgent:
    """One agent, serving one editor. Method and parameter names are those of the library."""

    def __init__(self, mux: AgentMux, adapter: Adapter, fields: Mapping[str, Any], tasks: anyio.abc.TaskGroup) -> None:
        """Initialize the agent. `fields` are run options of all sessions; `tasks` runs the event loops of runs."""
        self._mux = mux
        self._adapter = adapter
        self._tasks = tasks
        self._factory = SessionFactory(mux, adapter, fields, tasks)
        self._sessions: dict[str, EditorSession] = {}
        self._images = ImageStore()

    def on_connect(self, editor: EditorConnection) -> None:
        """Store the connection to the editor."""
        self._factory.editor = editor

    def answered(self, result: Mapping[str, Any]) -> None:
        """Send what an editor can only receive once it knows the id of a session that this response created."""
        session = self._sessions.get(str(result.get("sessionId")))
        if session is not None:
            self._tasks.start_soon(session.send_commands)

    def close(self) -> None:
        """Remove temporary files. The editor is disconnected, and all runs are over."""
        self._images.close()

    # -- connection

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """Return the capabilities of the agent."""
        del protocol_version  # only one version is supported; an editor that requires another one disconnects
        self._factory.editor_capabilities = client_capabilities
        return initialize_response(self._adapter)

    @with_request_errors
    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Check whether the user has logged in meanwhile. The login itself happens outside of the editor."""
        del method_id
        try:
            state = await anyio.to_thread.run_sync(self._mux.auth.check, self._adapter.agent)
        except AgentMuxError as error:
            if (
                error.code == "CAPABILITY_ERROR"
            ):  # the adapter knows no place of credentials; the agent will report missing ones
                return AuthenticateResponse()
            raise
        if state.status in {"unauthenticated", "expired"}:
            raise request_error("AUTH_ERROR", f"{self._adapter.agent} is {state.status}: {self._adapter.auth_guidance}")
        return AuthenticateResponse()

    # -- sessions

    @with_request_errors
    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        """Create a session. The agent starts with the first prompt."""
        session = await self._open(self._factory.new_id(), cwd, mcp_servers)
        return NewSessionResponse(session_id=session.session_id, **_choices(session))

    @with_request_errors
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Resume a stored session and send its history to the editor."""
        known_id = await self._close_existing(session_id)
        known = await anyio.to_thread.run_sync(find_stored, self._mux, self._adapter.agent, known_id)
        stored = await anyio.to_thread.run_sync(self._mux.sessions.read, known)
        origin = {"native_id": stored.summary.native_id, "spent": _known_cost(stored.summary)}
        session = await self._open(session_id, cwd, mcp_servers, **origin)
        for update in history_updates(stored, cwd):
            await session.send_update(update)
        await session.send_commands()
        return LoadSessionResponse(**_choices(session))

    @with_request_errors
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Resume a session whose history the editor already has."""
        native_id = await self._native_id_of(session_id)
        session = await self._open(session_id, cwd, mcp_servers, native_id=native_id)
        await session.send_commands()
        return ResumeSessionResponse(**_choices(session))

    @with_request_errors
    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ForkSessionResponse:
        """Create a session from the history of another one, which stays unchanged."""
        native_id = await self._native_id_of(session_id)
        session = await self._open(self._factory.new_id(), cwd, mcp_servers, forks=native_id, chosen_for=session_id)
        if session.choices.chosen:
            await self._factory.store_choices(session)
        return ForkSessionResponse(session_id=session.session_id, **_choices(session))

    @with_request_errors
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List the stored sessions of the agent, latest first."""
        live = {one.native_id: one.session_id for one in self._sessions.values() if one.native_id is not None}
        return await anyio.to_thread.run_sync(list_page, self._mux, self._adapter.agent, live, cwd, cursor)

    @with_request_errors
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """End the run of a session. The session stored by the agent is kept."""
        await self._session(session_id).close()
        del self._sessions[session_id]
        return CloseSessionResponse()

    # -- one session

    @with_request_errors
    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """Run a prompt. All its updates are sent before this returns."""
        session = self._session(session_id)
        return await session.prompt(self._images.store_images(session.commands.expand(read_prompt(prompt))))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Interrupt the agent; the pending prompt is answered with `cancelled`."""
        session = self._sessions.get(session_id)
        if session is not None:
            await session.cancel()

    @with_request_errors
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Set the approval mode of a session."""
        session = self._session(session_id)
        session.choices.choose(MODE, mode_id)
        await self._factory.store_choices(session)
        options = session.choices.options()
        await session.send_update(ConfigOptionUpdate(session_update="config_option_update", config_options=options))
        return SetSessionModeResponse()

    @with_request_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Set the approval mode, model or thinking effort, effective from the next prompt."""
        session = self._session(session_id)
        session.choices.choose(config_id, value)
        await self._factory.store_choices(session)
        if config_id == MODE:
            await session.send_update(
                CurrentModeUpdate(session_update="current_mode_update", current_mode_id=str(value))
            )
        return SetSessionConfigOptionResponse(config_options=session.choices.options())

    # -- helpers

    async def _close_existing(self, session_id: str) -> str:
        """Close a session of this connection, so that the agent stores it. Return the best known id of the session."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return session_id
        await session.close()
        return session.native_id or session_id

    async def _open(self, session_id: str, cwd: str, servers: Sequence[Any] | None, **origin: Any) -> EditorSession:
        await self._close_existing(session_id)
        session = self._sessions[session_id] = await self._factory.open(session_id, cwd, servers, **origin)
        return session

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise request_error(
                "SESSION_NOT_FOUND", f"this connection has no session {session_id!r}; create or load one first"
            )
        return session

    async def _native_id_of(self, session_id: str) -> str:
        session = self._sessions.get(session_id)
        if session is not None and session.native_id is not None:
            return session.native_id
        return await anyio.to_thread.run_sync(find_native, self._mux, self._adapter.agent, session_id)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # signature of the library
        """Reject extension methods: none are supported."""
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore extension notifications: none are supported."""


def _known_cost(summary: SessionSummary) -> float | None:
    """Return the cost of a session so far in US dollars; None if unknown."""
    return None if summary.cost.source == "unknown" else summary.cost.total_usd


def _choices(session: EditorSession) -> dict[str, Any]:
    return {"modes": session.choices.modes(), "config_options": session.choices.options()}
