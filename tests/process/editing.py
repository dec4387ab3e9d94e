"""An editor: the official library's client, with `amux acp` at the other end of real pipes."""

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
from tests.process.installed import PATIENCE

FORMS = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
LEAVING = 30.0  # seconds: all agents have their grace period first
COMMAND = (sys.executable, "-m", "agent_mux.cli.main", "acp")


class Editor:
    """Shows nothing, and remembers everything."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.wire: list[dict[str, Any]] = []
        """All messages from the agent, in order."""
        self.asked: list[tuple[Any, Sequence[Any]]] = []
        self.questions: list[tuple[str, Any]] = []
        self.decide: Callable[[Any], str | None] = lambda _: "allow"
        """The option that is chosen for a tool call; None: the person did not decide."""
        self.fill_in: dict[str, Any] = {}
        self.hold: asyncio.Event | None = None
        """Decisions wait for it."""
        self._news = asyncio.Event()
        self.agent: Any = None
        self.process: Any = None
        self.told = InitializeResponse(protocol_version=0)

    # -- what the library calls

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self._news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        del session_id
        self.asked.append((tool_call, options))
        self._news.set()
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
        """A message, as it is."""
        if event.direction is StreamDirection.INCOMING:
            self.wire.append(event.message)

    # -- what a person does

    async def begin(self, cwd: Path, **more: Any) -> str:
        """A new session."""
        answer = await self.agent.new_session(cwd=str(cwd), mcp_servers=[], **more)
        return str(answer.session_id)

    async def ask(self, session_id: str, words: str) -> str:
        """Prompt. Returns the stop reason."""
        answer = await self.agent.prompt(session_id=session_id, prompt=[text_block(words)])
        return str(answer.stop_reason)

    async def until(self, holds: Callable[[Self], Any]) -> None:
        """Wait until something is so."""
        while not holds(self):
            self._news.clear()
            await self._news.wait()

    # -- what was seen

    def said(self, session_id: str) -> str:
        """All words of the agent."""
        chunks = [update for update in self.of(session_id) if isinstance(update, AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks)

    def of(self, session_id: str) -> list[Any]:
        """The updates of a session."""
        return [update for one, update in self.updates if one == session_id]

    def calls(self, session_id: str) -> list[tuple[str, str | None]]:
        """Tool calls: their titles and states, as they changed."""
        shown: dict[str, str] = {}
        states: list[tuple[str, str | None]] = []
        for update in self.of(session_id):
            if isinstance(update, ToolCallStart | ToolCallProgress):
                shown[update.tool_call_id] = update.title or shown[update.tool_call_id]
                states.append((shown[update.tool_call_id], update.status))
        return states


@asynccontextmanager
async def editing(
    *arguments: object,
    environment: Mapping[str, str],
    cwd: Path,
    can: ClientCapabilities | None = None,
    patience: float = PATIENCE,
    code: int = 0,
) -> AsyncIterator[Editor]:
    """An editor that has started `amux acp` and shaken hands with it. At the end it closes its pipe, and waits.

    `code`: with which `amux acp` leaves then.
    """
    editor = Editor()
    tree = {"PYTHONPATH": ":".join(filter(None, (environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))))}
    with anyio.fail_after(patience):
        async with spawn_agent_process(
            cast("Client", editor), *COMMAND, *map(str, arguments),
            env={**environment, **tree}, cwd=cwd,
            transport_kwargs={"stderr": None, "shutdown_timeout": LEAVING},
            observers=[editor.observe], use_unstable_protocol=True,
        ) as (_, process):  # fmt: skip
            editor.process = process
            editor.told = await editor.agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=can)
            yield editor
    assert process.returncode == code, "it did not leave by itself"
