"""The Agent Client Protocol, seen from the client: JSON-RPC 2.0 both ways, one message per line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.actions import AnyAction, Cancel, Interrupt
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.effects import WriteStdin
from agent_mux.facts import Fact, Ignored, LogLine, Note, SessionKnown, Unknown
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.acp.approvals import ELICITATION, PERMISSION, AcpApprovals
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks
from agent_mux_adapters._dialects.acp.reader import AcpReader
from agent_mux_adapters._dialects.acp.responses import AcpResponses
from agent_mux_adapters._dialects.acp.tools import AcpTools
from agent_mux_adapters._dialects.acp.turns import OPENING_METHODS, AcpSession, AcpTurns
from agent_mux_adapters._dialects.acp.wire import NOT_OFFERED, Chunk, decode_chunk, is_extension
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

_NO_QUIRKS = AcpQuirks()


class AcpCodec:
    """Speaks with an agent, or reads what another client spoke with it."""

    def __init__(self, context: CodecContext, quirks: AcpQuirks = _NO_QUIRKS) -> None:
        session = AcpSession(context, quirks)
        self._session = session
        self._tools = AcpTools(quirks.tools, context.cwd)
        self._tools.servers.update(server.name for server in context.mcp_servers)
        self._conversation = AcpTurns(session)
        self._requests = AcpApprovals(session)
        self._updates = AcpReader(session, self._tools)
        self._in_run = False
        """The last line was such a fragment, and the session is as it was then."""
        self._answers = AcpResponses(session, self._conversation, self._requests, self._updates)
        self._sources: dict[Source, Callable[[bytes], Iterable[Step]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._overhear,
        }

    def start(self) -> Iterable[Step]:
        """The handshake begins."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        chunk = self.chunk(line) if source is STDOUT else None
        told = self._updates.fragment(chunk) if chunk is not None else None
        self._in_run = told is not None
        return told or self._sources[source](line)

    def chunk(self, line: bytes) -> Chunk | None:
        """The hot path: the fragment of a message or a thought of this run that the line plainly is."""
        # They come in runs: to look for the word in a line costs half as much as to read the line.
        if not self._in_run and (b'_chunk"' not in line or not self._session.is_live):
            return None
        try:
            read = decode_chunk(line)
        except (ValueError, RecursionError):
            return None
        params = read.params
        return params.update if params.session == self._session.id and read.method == "session/update" else None

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        steps = dispatch_action(action, self._conversation, self._requests.reply)
        return (*steps, *self._nobody_decides()) if isinstance(action, Interrupt | Cancel) else steps

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """The process is gone: nothing was kept back."""
        return ()

    # -- a line of the agent

    def _receive(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                return _mapped_or_not(self._asked(method, message["id"], message.get("params"), line))
            return _mapped_or_not(self._told(method, message.get("params"), line))
        if "id" in message and ("result" in message or "error" in message):
            return _mapped_or_not(self._answers.read(message))
        return _unknown("message", line)

    def _told(self, method: str, params: Any, line: bytes) -> tuple[Step, ...]:
        fields = mapping(params)
        if method == "session/update":
            update = mapping(fields.get("update"))
            told = self._update(text(fields.get("sessionId")), update)
            return told if told is not None else _unknown(f"{method}:{text(update.get('sessionUpdate'))}", line)
        if method == "$/cancel_request" and "requestId" in fields:
            return self._requests.withdrawn(fields["requestId"])
        return self._vendor(method) or _unknown(method, line)

    def _update(self, session_id: str, update: Mapping[str, Any]) -> tuple[Step, ...] | None:
        session = self._session
        was_history = session.in_history
        named: tuple[Step, ...] = ()
        decided = self._decided(update)
        told = self._updates.told(session_id, update)
        if told is None:
            return None
        if session.id is None and not session.is_seen_from_both_sides and _says_something(told) and session_id:
            # The beginning is missing: this is the session, whatever it was opened with.
            session.id = session_id
            named = (SessionKnown(session_id),)
        return *named, *decided, *told, *(self._conversation.next() if was_history and not session.in_history else ())

    def _decided(self, update: Mapping[str, Any]) -> tuple[Step, ...]:
        """Where the replies are not seen, what becomes of a call tells what was decided about it."""
        status = update.get("status")
        if self._session.is_seen_from_both_sides or status not in ("in_progress", "completed", "failed"):
            return ()
        return self._requests.call_moved(text(update.get("toolCallId")), granted=status != "failed")

    def _asked(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[Step, ...]:
        if method in (PERMISSION, ELICITATION):
            if self._session.is_stopping and not self._session.is_observed:
                return self._requests.refuse(raw_id, method)
            return self._decidable(method, raw_id, mapping(params))
        why = NOT_OFFERED.get(method)
        known = (Ignored(method, why),) if why else self._vendor(method)
        return *(known or _unknown(method, line)), *self._refusal(method, raw_id)

    def _decidable(self, method: str, raw_id: Any, params: Mapping[str, Any]) -> tuple[Step, ...]:
        scope, inside = self._updates.scope_of(mapping(params.get("toolCall")))
        is_inside = scope is not self._updates
        begun = scope.asked(params.get("toolCall"))
        if method == ELICITATION:
            return *begun, *self._requests.elicitation(raw_id, params)
        shown, call = scope.tools.asked(params.get("toolCall"))
        told = (*begun, *shown)
        asked = self._requests.permission(raw_id, params, call, is_inside=is_inside)
        return *(inside(told) if told else ()), *asked

    def _refusal(self, method: str, raw_id: Any) -> tuple[Step, ...]:
        if self._session.is_observed:
            return ()
        if method in self._session.quirks.acknowledged:
            return (WriteStdin(self._session.rpc.respond(raw_id, {})),)
        return (
            WriteStdin(self._session.rpc.respond_error(raw_id, METHOD_NOT_FOUND, f"agent-mux does not offer {method}")),
        )

    def _vendor(self, method: str) -> tuple[Ignored, ...]:
        why = self._session.quirks.ignored.get(method)
        if why is None and is_extension(method):
            why = "an extension of the agent's own"
        return (Ignored(method, why),) if why else ()

    def _nobody_decides(self) -> tuple[Step, ...]:
        if not self._session.is_stopping:
            return ()
        return self._requests.cancel("the turn was cancelled")

    # -- a line of another client

    def _overhear(self, line: bytes) -> Iterable[Step]:
        self._session.is_seen_from_both_sides = True
        message = load_object(line)
        if message is None:
            return (Note("a line to the agent that is no JSON object", "warn"),)
        method, params = message.get("method"), mapping(message.get("params"))
        if isinstance(method, str):
            if "id" in message:
                self._session.rpc.observe_request(message["id"], method, params)
            self._overheard(method, params)
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._requests.overhear(message["id"], message.get("result"), message.get("error"))
        return _unknown("stdin", line)

    def _overheard(self, method: str, params: Mapping[str, Any]) -> None:
        session = self._session
        if method in OPENING_METHODS and session.id is None:
            names = (text(server.get("name")) for server in rows(params.get("mcpServers")))
            self._tools.servers.update(name for name in names if name)
        elif method == "session/prompt" and session.id in (None, params.get("sessionId")):
            session.prompts += 1
            session.is_stopping = False
        elif method == "session/cancel":
            session.is_stopping = True


def _says_something(told: Iterable[Step]) -> bool:
    return any(not isinstance(step, Ignored) for step in told)


def _unknown(kind: str, line: bytes) -> tuple[Step, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def _mapped_or_not(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """A line is ignored only when nothing else is said about it."""
    if len(steps) == 1 or sum(isinstance(step, Fact) for step in steps) < 2:  # one alone may be `Ignored`
        return steps
    kept = tuple(step for step in steps if not isinstance(step, Ignored))
    if any(isinstance(step, Fact) for step in kept):
        return kept
    first = next(step for step in steps if isinstance(step, Ignored))
    return first, *kept
