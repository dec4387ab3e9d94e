"""A scripted editor: the official library's client, connected to `amux acp` over real pipes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, cast

import anyio
from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AcceptElicitationResponse,
    AgentMessageChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    InitializeResponse,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
)
from tests.process.installed_command import PATIENCE

FORMS = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
SHUTDOWN_TIMEOUT = 30.0  # seconds: includes the grace periods of all agents
COMMAND = (sys.executable, "-m", "agent_mux.cli.main", "acp")


class Editor:
    """An editor that displays nothing and records everything."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.wire: list[dict[str, Any]] = []
        """All messages from the agent, in order."""
        self.asked: list[tuple[Any, Sequence[Any]]] = []
        self.questions: list[tuple[str, Any]] = []
        self.decide: Callable[[Any], str | None] = lambda _: "allow"
        """Returns the id of the chosen option for a tool call; None: the user did not decide."""
        self.fill_in: dict[str, Any] = {}
        self.hold: asyncio.Event | None = None
        """An event that decisions wait for; None: they do not wait."""
        self._changed = asyncio.Event()
        self.agent: Any = None
        self.process: Any = None
        self.init_response = InitializeResponse(protocol_version=0)

    # -- called by the library

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        del session_id
        self.asked.append((tool_call, options))
        self._changed.set()
        if self.hold is not None:
            await self.hold.wait()
        chosen = self.decide(tool_call)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> AcceptElicitationResponse:
        self.questions.append((message, mode))
        return AcceptElicitationResponse(action="accept", content=self.fill_in)

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    def observe(self, event: StreamEvent) -> None:
        """Record one incoming message of the wire."""
        if event.direction is StreamDirection.INCOMING:
            self.wire.append(event.message)

    # -- actions of the user

    async def begin(self, cwd: Path, **more: Any) -> str:
        """Open a new session and return its id."""
        answer = await self.agent.new_session(cwd=str(cwd), mcp_servers=[], **more)
        return str(answer.session_id)

    async def ask(self, session_id: str, text: str) -> str:
        """Send a prompt and return the stop reason."""
        answer = await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])
        return str(answer.stop_reason)

    async def wait_until(self, condition: Callable[[Self], Any]) -> None:
        """Wait until a condition on this editor is true."""
        while not condition(self):
            self._changed.clear()
            await self._changed.wait()

    # -- received updates

    def text_of(self, session_id: str) -> str:
        """Return the accumulated text of the agent's messages."""
        chunks = [update for update in self.updates_of(session_id) if isinstance(update, AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks)

    def updates_of(self, session_id: str) -> list[Any]:
        """Return the updates of a session."""
        return [update for one, update in self.updates if one == session_id]

    def calls(self, session_id: str) -> list[tuple[str, str | None]]:
        """Return the titles and states of tool calls, in the order of their changes."""
        shown: dict[str, str] = {}
        states: list[tuple[str, str | None]] = []
        for update in self.updates_of(session_id):
            if isinstance(update, ToolCallStart | ToolCallProgress):
                shown[update.tool_call_id] = update.title or shown[update.tool_call_id]
                states.append((shown[update.tool_call_id], update.status))
        return states


@asynccontextmanager
async def start_editor(
    *arguments: object,
    environment: Mapping[str, str],
    cwd: Path,
    can: ClientCapabilities | None = None,
    patience: float = PATIENCE,
    code: int = 0,
) -> AsyncIterator[Editor]:
    """Start `amux acp` and yield an editor that is connected to it. At the end, close the pipe and wait.

    `code`: the expected exit code of `amux acp`.
    """
    editor = Editor()
    tree = {"PYTHONPATH": ":".join(filter(None, (environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))))}
    with anyio.fail_after(patience):
        async with spawn_agent_process(
            cast("Client", editor), *COMMAND, *map(str, arguments),
            env={**environment, **tree}, cwd=cwd,
            transport_kwargs={"stderr": None, "shutdown_timeout": SHUTDOWN_TIMEOUT},
            observers=[editor.observe], use_unstable_protocol=True,
        ) as (_, process):  # fmt: skip
            editor.process = process
            editor.init_response = await editor.agent.initialize(
                protocol_version=PROTOCOL_VERSION, client_capabilities=can
            )
            yield editor
    assert process.returncode == code, "amux acp did not exit with the expected code"
