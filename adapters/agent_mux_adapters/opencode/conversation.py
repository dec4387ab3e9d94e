"""Our side of a conversation with `opencode serve`: which session, prompts one after the other, when to hang up.

    us                                       the bridge
                                        <-   server.connected
    GET /mcp, POST /session             ->
                                        <-   the answers
    POST /session/<id>/prompt_async     ->
                                        <-   its answer, session.status busy ... idle
    the next prompt, or end of input    ->

A prompt is answered before the server takes it up. What is to happen in its turn has to wait until it is busy.
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, unquote

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Failure, Ignored, Note, SessionKnown, TurnFailed
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text
from agent_mux_adapters.opencode.client import Asked, Client, session_in
from agent_mux_adapters.opencode.failures import code_of
from agent_mux_adapters.opencode.names import Names
from agent_mux_adapters.opencode.settings import create_body, prompt_body

_OK = range(200, 300)
_NOT_FOUND = 404
_SESSION_IDS = "ses"
"""Begins the ids of sessions; any other makes the server stumble."""


class Conversation(PromptQueue):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, context: CodecContext, client: Client, names: Names) -> None:
        super().__init__("opencode", interactive=context.interactive)
        self._context = context
        self._client = client
        self._names = names
        self.is_silent = context.prompt is None
        self.sees_requests = not self.is_silent
        """What the client asked is known: our own requests, or those of a transcript with both sides."""
        self.session_id: str | None = None
        self._turn: Literal["none", "asked", "running"] = "none"
        self._on_the_way = 0
        """Messages that were sent for the turn that runs, and that the session does not show yet."""
        self._to_steer: list[str] = []
        self._interrupt_due = False
        self.was_stopped = False
        """The turn was to be stopped."""
        self._first = True

    @property
    def expects_turn(self) -> bool:
        """A prompt was sent, and the session did not take it up yet."""
        return self._turn == "asked"

    # -- what a consumer wants

    def start(self) -> tuple[Step, ...]:
        """The bridge runs; the first event says when the server listens."""
        if not self.is_silent:
            self._queue(self._context.prompt or "")
        return ()

    def steer(self, text: str) -> tuple[Step, ...]:
        """A message for the turn that runs; without one it is a prompt."""
        if self._turn == "none":
            return self.send(text)
        self._to_steer.append(text)
        return self._catch_up()

    def interrupt(self) -> tuple[Step, ...]:
        """Stop the turn that runs, or is about to."""
        if self._turn == "none" and not self._prompts:
            return (Note("nothing to interrupt: opencode waits for a prompt"),)
        self._interrupt_due = True
        return self._catch_up()

    def cancel(self) -> tuple[Step, ...]:
        """The run is being aborted. The end of our input, which follows, ends everything else."""
        self._prompts.clear()
        self._closing = True
        abort = self.interrupt() if self._turn != "none" else ()
        return *abort, *self._forget()

    # -- what the server tells

    def connected(self) -> tuple[Effect, ...]:
        """The server listens."""
        if self.is_silent or self.session_id is not None:
            return ()
        return self._client.ask("mcp", "GET", "/mcp"), self._ask_for_session()

    def running(self) -> tuple[Effect, ...]:
        """The session works."""
        if self._turn != "running":
            self._turn, self._on_the_way = "running", 0
        return self._catch_up()

    def message_seen(self) -> None:
        """The session shows a message of ours in the turn that runs."""
        self._on_the_way = max(self._on_the_way - 1, 0)

    def turn_over(self) -> tuple[Effect, ...]:
        """The session rests. A message that came too late for the turn makes one of its own."""
        self._turn = "asked" if self._on_the_way and not self.was_stopped else "none"
        self._on_the_way = 0
        self._prompts.extendleft(reversed(self._to_steer))
        self._to_steer.clear()
        self._interrupt_due = self.was_stopped = False
        return self.next()

    def give_up(self) -> tuple[Effect, ...]:
        """Stop a turn that leads nowhere."""
        return self._abort()

    # -- what the server answers

    def answered(self, asked: Asked, status: int, body: Any, error: str) -> tuple[Step, ...]:
        """The answer to a request; `status` is 0 when there was none."""
        kind = f"answer:{asked.topic}"
        if status not in _OK:
            return self._refused(asked, status, _message_of(body) or error or f"HTTP status {status}")
        match asked.topic:
            case "mcp":
                return self._know_servers(kind, mapping(body))
            case "create" | "fork" | "open":
                return self._opened(asked, mapping(body))
        return (Ignored(kind, "the events tell what comes of it"),)

    def overheard(self, asked: Asked) -> None:
        """A request of another client."""
        self.sees_requests = True
        if asked.topic == "prompt" and self._turn == "none":
            self._turn = "asked"
        if asked.topic == "abort" and session_in(asked.path) == self.session_id:
            self.was_stopped = True

    def _refused(self, asked: Asked, status: int, message: str) -> tuple[Step, ...]:
        match asked.topic:
            case "create" | "fork" | "open" if self.session_id is None:
                return TurnFailed(_no_session(asked, status, message)), *self._hang_up()
            case "prompt" if session_in(asked.path) == self.session_id:
                return TurnFailed(Failure(code_of(message), message)), *self._not_taken()
            case "permission" | "question" if status == _NOT_FOUND:
                return (Ignored(f"answer:{asked.topic}", "it was settled with another one"),)
        return (Note(f"opencode refused {asked.path}: {message}", "warn"),)

    def _not_taken(self) -> tuple[Effect, ...]:
        self._on_the_way = 0
        return self.turn_over() if self._turn == "asked" else ()

    def _know_servers(self, kind: str, servers: Mapping[str, Any]) -> tuple[Step, ...]:
        self._names.know_servers(servers)
        broken = {name: mapping(state) for name, state in servers.items() if mapping(state).get("status") == "failed"}
        notes = (
            Note(f"MCP server {name} does not work: {text(state.get('error'))}", "warn")
            for name, state in broken.items()
        )
        return tuple(notes) or (Ignored(kind, "tells the tools of MCP servers from others"),)

    def _opened(self, asked: Asked, session: Mapping[str, Any]) -> tuple[Step, ...]:
        session_id = text(session.get("id"))
        if not session_id or self.session_id is not None:
            return (Ignored(f"answer:{asked.topic}", "another session than that of the run"),)
        self.session_id = session_id
        known = SessionKnown(
            session_id,
            resumed=asked.topic == "open",
            forked_from=session_in(asked.path) if asked.topic == "fork" else None,
        )
        return known, *self.next()

    # -- inside

    def _ask_for_session(self) -> WriteStdin:
        context = self._context
        if context.session_id is not None:
            return self._client.ask("open", "GET", f"/session/{quote(context.session_id, safe='')}")
        if context.fork_session_id is not None:
            return self._client.ask("fork", "POST", f"/session/{quote(context.fork_session_id, safe='')}/fork", {})
        return self._client.ask("create", "POST", "/session", create_body(context))

    def next(self) -> tuple[Effect, ...]:
        """The next prompt, or the end of our input, if it is time for one of them."""
        if self.is_silent or self._closed or self.session_id is None or self._turn != "none":
            return ()
        if self._prompts:
            self._turn = "asked"
            with_files, self._first = self._first, False
            return (self._prompt(self._prompts.popleft(), with_files=with_files),)
        return (*self._forget(), *self._hang_up()) if self._closing else ()

    def _prompt(self, text: str, *, with_files: bool = False) -> WriteStdin:
        body = prompt_body(self._context, text, with_files=with_files)
        return self._client.ask("prompt", "POST", f"/session/{self.session_id}/prompt_async", body)

    def _catch_up(self) -> tuple[Effect, ...]:
        """Say what had to wait for the turn to run."""
        if self.is_silent or self._turn != "running":
            return ()
        messages = tuple(map(self._prompt, self._to_steer))
        self._on_the_way += len(messages)
        self._to_steer.clear()
        return (*messages, *self._abort()) if self._interrupt_due else messages

    def _abort(self) -> tuple[Effect, ...]:
        if self.is_silent:
            return ()
        self._interrupt_due, self.was_stopped = False, True
        return (self._client.ask("abort", "POST", f"/session/{self.session_id}/abort"),)

    def _forget(self) -> tuple[Effect, ...]:
        if self.is_silent or not self._context.no_session or self.session_id is None:
            return ()
        return (self._client.ask("delete", "DELETE", f"/session/{self.session_id}"),)

    def _hang_up(self) -> tuple[Effect, ...]:
        if self.is_silent or self._closed:
            return ()
        self._closed = True
        return (CloseStdin(),)


def _no_session(asked: Asked, status: int, message: str) -> Failure:
    session_id = unquote(session_in(asked.path))
    if session_id and not session_id.startswith(_SESSION_IDS):
        return Failure("SESSION_NOT_FOUND", f"{session_id!r} is not the id of a session of opencode")
    is_missing = bool(session_id) and status == _NOT_FOUND
    return Failure("SESSION_NOT_FOUND" if is_missing else code_of(message), message)


def _message_of(body: Any) -> str:
    fields = mapping(body)
    found = text(fields.get("message")) or text(mapping(fields.get("data")).get("message"))
    return found or (as_json(body) if fields else text(body))
