"""The codec of the Agent Client Protocol, client side: JSON-RPC 2.0 in both directions, one message per line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.sdk.codec import (
    STDOUT,
    AnyAction,
    Cancel,
    CodecContext,
    CodecOutput,
    Exit,
    Interrupt,
    Source,
    WriteStdin,
)
from agent_mux.sdk.facts import Fact, Ignored, LogLine, Note, SessionKnown, Unknown
from agent_mux.sdk.native_json import load_object
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
    """The codec of one run: drives an agent, or reads the transcript of another client."""

    def __init__(self, context: CodecContext, quirks: AcpQuirks = _NO_QUIRKS) -> None:
        session = AcpSession(context, quirks)
        self._session = session
        self._tools = AcpTools(quirks.tools, context.cwd)
        self._tools.servers.update(server.name for server in context.mcp_servers)
        self._turns = AcpTurns(session)
        self._approvals = AcpApprovals(session)
        self._updates = AcpReader(session, self._tools)
        self._after_fragment = False
        """Whether the last line was a streamed fragment, so that the next one probably is, too."""
        self._responses = AcpResponses(session, self._turns, self._approvals, self._updates)
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._receive_from_client,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Begin the handshake with `initialize`, unless the run is only observed."""
        return self._turns.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps of one line."""
        chunk = self.chunk(line) if source is STDOUT else None
        facts = self._updates.fragment(chunk) if chunk is not None else None
        self._after_fragment = facts is not None
        return facts or self._sources[source](line)

    def chunk(self, line: bytes) -> Chunk | None:
        """Decode a fragment of a message or thought of this run (hot path); None for any other line."""
        # Fragments come in runs. Searching a line for the word costs half as much as decoding the line.
        if not self._after_fragment and (b'_chunk"' not in line or not self._session.is_live):
            return None
        try:
            decoded = decode_chunk(line)
        except (ValueError, RecursionError):
            return None
        params = decoded.params
        return params.update if params.session == self._session.id and decoded.method == "session/update" else None

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Carry out an action of the consumer."""
        steps = dispatch_action(action, self._turns, self._approvals.reply)
        return (*steps, *self._cancel_approvals()) if isinstance(action, Interrupt | Cancel) else steps

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return nothing: no facts are held back."""
        return ()

    # -- lines of the agent

    def _receive(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                return _without_redundant_ignored(
                    self._agent_request(method, message["id"], message.get("params"), line)
                )
            return _without_redundant_ignored(self._notification(method, message.get("params"), line))
        if "id" in message and ("result" in message or "error" in message):
            return _without_redundant_ignored(self._responses.read(message))
        return _unknown("message", line)

    def _notification(self, method: str, params: Any, line: bytes) -> tuple[CodecOutput, ...]:
        fields = mapping(params)
        if method == "session/update":
            update = mapping(fields.get("update"))
            steps = self._update(text(fields.get("sessionId")), update)
            return steps if steps is not None else _unknown(f"{method}:{text(update.get('sessionUpdate'))}", line)
        if method == "$/cancel_request" and "requestId" in fields:
            return self._approvals.withdraw(fields["requestId"])
        return self._known_method(method) or _unknown(method, line)

    def _update(self, session_id: str, update: Mapping[str, Any]) -> tuple[CodecOutput, ...] | None:
        session = self._session
        was_history = session.in_history
        named: tuple[CodecOutput, ...] = ()
        decided = self._inferred_decision(update)
        facts = self._updates.read(session_id, update)
        if facts is None:
            return None
        if session.id is None and not session.has_client_side and _has_content(facts) and session_id:
            # The start of the transcript is missing: this is the session, however it was opened.
            session.id = session_id
            named = (SessionKnown(session_id),)
        return *named, *decided, *facts, *(self._turns.next() if was_history and not session.in_history else ())

    def _inferred_decision(self, update: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        """Settle approvals by the status of their call, where the replies are not recorded."""
        status = update.get("status")
        if self._session.has_client_side or status not in ("in_progress", "completed", "failed"):
            return ()
        return self._approvals.settle_call(text(update.get("toolCallId")), granted=status != "failed")

    def _agent_request(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[CodecOutput, ...]:
        if method in (PERMISSION, ELICITATION):
            if self._session.is_stopping and not self._session.is_observed:
                return self._approvals.refuse(raw_id, method)
            return self._interaction(method, raw_id, mapping(params))
        why = NOT_OFFERED.get(method)
        known = (Ignored(method, why),) if why else self._known_method(method)
        return *(known or _unknown(method, line)), *self._refusal(method, raw_id)

    def _interaction(self, method: str, raw_id: Any, params: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        scope, attribute = self._updates.scope_of(mapping(params.get("toolCall")))
        is_inside = scope is not self._updates
        begun = scope.permission_requested(params.get("toolCall"))
        if method == ELICITATION:
            return *begun, *self._approvals.elicitation(raw_id, params)
        shown, call = scope.tools.permission_requested(params.get("toolCall"))
        facts = (*begun, *shown)
        asked = self._approvals.permission(raw_id, params, call, is_inside=is_inside)
        return *(attribute(facts) if facts else ()), *asked

    def _refusal(self, method: str, raw_id: Any) -> tuple[CodecOutput, ...]:
        if self._session.is_observed:
            return ()
        if method in self._session.quirks.acknowledged:
            return (WriteStdin(self._session.rpc.respond(raw_id, {})),)
        return (
            WriteStdin(self._session.rpc.respond_error(raw_id, METHOD_NOT_FOUND, f"agent-mux does not offer {method}")),
        )

    def _known_method(self, method: str) -> tuple[Ignored, ...]:
        why = self._session.quirks.ignored.get(method)
        if why is None and is_extension(method):
            why = "an extension of the agent's own"
        return (Ignored(method, why),) if why else ()

    def _cancel_approvals(self) -> tuple[CodecOutput, ...]:
        if not self._session.is_stopping:
            return ()
        return self._approvals.cancel("the turn was cancelled")

    # -- lines of another client

    def _receive_from_client(self, line: bytes) -> Iterable[CodecOutput]:
        self._session.has_client_side = True
        message = load_object(line)
        if message is None:
            return (Note("a line to the agent is not a JSON object", "warn"),)
        method, params = message.get("method"), mapping(message.get("params"))
        if isinstance(method, str):
            if "id" in message:
                self._session.rpc.observe_request(message["id"], method, params)
            self._track_client_request(method, params)
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._approvals.observe_reply(message["id"], message.get("result"), message.get("error"))
        return _unknown("stdin", line)

    def _track_client_request(self, method: str, params: Mapping[str, Any]) -> None:
        session = self._session
        if method in OPENING_METHODS and session.id is None:
            names = (text(server.get("name")) for server in rows(params.get("mcpServers")))
            self._tools.servers.update(name for name in names if name)
        elif method == "session/prompt" and session.id in (None, params.get("sessionId")):
            session.prompts += 1
            session.is_stopping = False
        elif method == "session/cancel":
            session.is_stopping = True


def _has_content(steps: Iterable[CodecOutput]) -> bool:
    return any(not isinstance(step, Ignored) for step in steps)


def _unknown(kind: str, line: bytes) -> tuple[CodecOutput, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def _without_redundant_ignored(steps: tuple[CodecOutput, ...]) -> tuple[CodecOutput, ...]:
    """Drop `Ignored` facts from a line that has other facts."""
    if len(steps) == 1 or sum(isinstance(step, Fact) for step in steps) < 2:  # a single one may be `Ignored`
        return steps
    kept = tuple(step for step in steps if not isinstance(step, Ignored))
    if any(isinstance(step, Fact) for step in kept):
        return kept
    first = next(step for step in steps if isinstance(step, Ignored))
    return first, *kept
