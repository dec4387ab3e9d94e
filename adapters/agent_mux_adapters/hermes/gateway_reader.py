"""Gateway events to facts, with one method for each kind of event."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk.codec import CodecContext, CodecOutput, WriteStdin
from agent_mux.sdk.facts import Fact, Ignored, Note, TurnBegin, TurnFailed, Unknown
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.hermes.approvals import HermesApprovals
from agent_mux_adapters.hermes.mcp_servers import HermesMcpServers
from agent_mux_adapters.hermes.messages import HermesMessages
from agent_mux_adapters.hermes.outcome import failure_of
from agent_mux_adapters.hermes.subagents import HermesSubagents, background_id, collected_id
from agent_mux_adapters.hermes.tools import DELEGATION, QUESTION, HermesTools, error_of
from agent_mux_adapters.hermes.turns import HermesTurns
from agent_mux_adapters.hermes.usage import HermesUsage
from agent_mux_adapters.hermes.wire import IGNORED_KINDS, OTHER_SESSION, TEXT_DELTA, GatewayEvent

_EventReader = Callable[[Mapping[str, Any]], tuple[CodecOutput, ...] | None]


class GatewayReader:
    """Reads the events of one run. The methods of single kinds return None when the event is malformed."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient, turns: HermesTurns) -> None:
        self._rpc = rpc
        self._is_observed = context.prompt is None
        self._turns = turns
        self._servers = HermesMcpServers(server.name for server in context.mcp_servers)
        self._tools = HermesTools(context.cwd, self._servers)
        self._usage = HermesUsage()
        self._subagents = HermesSubagents(self._usage)
        self._messages = HermesMessages()
        self.approvals = HermesApprovals(rpc, is_observed=self._is_observed)
        self._readers: dict[str, _EventReader] = {
            "approval.request": self._approval_request,
            "clarify.request": self._clarify_request,
            "error": self._error,
            "message.complete": self._message_complete,
            "message.delta": self._message_delta,
            "message.interim": self._message_interim,
            "message.start": self._message_start,
            "notification.show": self._notification,
            "reasoning.delta": self._reasoning_delta,
            "review.summary": self._review_summary,
            "secret.request": self._secret_request,
            "status.update": self._status_update,
            "sudo.request": self._sudo_request,
            "terminal.read.request": self._terminal_read_request,
            "thinking.delta": self._thinking_delta,
            "tool.complete": self._tool_complete,
            "tool.generating": self._tool_generating,
            "tool.output_risk": self._tool_output_risk,
            "tool.start": self._tool_start,
        }

    def error_line(self, line: str) -> None:
        """Read a line of standard error."""
        self._messages.error_line(line)

    def fragment(self, kind: str, session: str, delta: str) -> tuple[CodecOutput, ...]:
        """Return the facts of a fragment of text or thinking."""
        if not self._is_our_session(session):
            return (Ignored(kind, OTHER_SESSION),)
        return self._messages.text_delta(delta) if kind == TEXT_DELTA else self._messages.thinking_delta(delta)

    def event(self, event: GatewayEvent) -> tuple[CodecOutput, ...] | None:
        """Return the facts and effects of an event; None when its kind is unknown or it is malformed."""
        if event.kind == "session.info":
            return self._session_info(event)
        reader = self._readers.get(event.kind)
        is_known = reader is not None or event.kind in IGNORED_KINDS or event.kind.startswith("subagent.")
        if not is_known:
            return None
        if not self._is_our_session(event.session):
            return (Ignored(event.kind, OTHER_SESSION),)
        if event.kind in IGNORED_KINDS:
            return (Ignored(event.kind, IGNORED_KINDS[event.kind]),)
        return self._subagents.read_event(event.kind, event.payload) if reader is None else reader(event.payload)

    def _is_our_session(self, session: str) -> bool:
        return not session or self._turns.session in (None, session)

    def _session_info(self, event: GatewayEvent) -> tuple[CodecOutput, ...]:
        payload = event.payload
        steps = self._turns.session_info(event.session, payload)
        if not self._is_our_session(event.session):
            return steps or (Ignored(event.kind, OTHER_SESSION),)
        failures = self._servers.update(payload.get("mcp_servers"))
        if payload.get("yolo") is not None:
            self._tools.is_unattended = payload["yolo"] is True
        return (*steps, *failures) or (Ignored(event.kind, "nothing new of the session"),)

    # -- turns

    def _message_start(self, _: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        if self._messages.is_open:
            # Hermes prints it twice for turns without a prompt.
            return (Ignored("message.start", "the turn has begun"),)
        self._messages = HermesMessages(is_open=True)
        steps = self._turns.turn_started()
        facts = [step for step in steps if isinstance(step, Fact)]
        return *facts, TurnBegin(), *(step for step in steps if not isinstance(step, Fact))

    def _message_delta(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self._messages.text_delta(text(payload.get("text")))

    def _reasoning_delta(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self._messages.thinking_delta(text(payload.get("text")))

    def _thinking_delta(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self._messages.animation(text(payload.get("text")))

    def _message_interim(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self._messages.interim(text(payload.get("text")), is_streamed=payload.get("already_streamed") is True)

    def _message_complete(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...] | None:
        closing = self._messages.complete(payload)
        if closing is None:
            return None
        usage = payload.get("usage")
        usage_facts = self._usage.turn_ended(usage) if isinstance(usage, dict) else ()
        warning = text(payload.get("warning"))
        notes = (Note(warning, "warn"),) if warning else ()
        self._tools.clear()
        self._turns.turn_ended()
        return *self.approvals.turn_ended(), *notes, *closing[:-1], *usage_facts, closing[-1]

    def _error(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        message = text(payload.get("message"))
        self._messages.is_open = False
        self._tools.clear()
        return *self.approvals.turn_ended(), TurnFailed(failure_of(message)), *self._turns.failed()

    def _status_update(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        status = text(payload.get("text"))
        self._messages.status(status)
        if payload.get("kind") == "process":
            self._turns.background.reported(status)
            return (Note(status),)
        return (Note(status, "info" if payload.get("kind") == "compacting" else "warn"),)

    # -- tools

    def _tool_generating(self, _: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self._messages.tool_generating()

    def _tool_start(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...] | None:
        if not text(payload.get("tool_id")) or not text(payload.get("name")):
            return None
        if payload["name"] in (DELEGATION, QUESTION):
            return self._messages.end_block() or (
                Ignored("tool.start", "reported by the question or by the sub-agents"),
            )
        facts = *self._messages.end_block(), *self._tools.start(payload)
        return facts or (Ignored("tool.start", "reported with its input at its end"),)

    def _tool_complete(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...] | None:
        if not text(payload.get("tool_id")) or not text(payload.get("name")):
            return None
        self._turns.tool_ended()
        started, collected = background_id(payload), collected_id(payload)
        if started is not None:
            self._turns.background.started(started)
        if collected is not None:
            self._turns.background.collected(collected)
        settled = *self.approvals.call_ended(payload), *self.approvals.call_denied_by_rule(payload)
        if payload["name"] == DELEGATION:
            return *settled, *self._subagents.delegation_returned(payload)
        if payload["name"] == QUESTION and error_of(payload.get("result")) is None:
            return settled or (Ignored("tool.complete", "the answer is known"),)
        return *settled, *self._tools.complete(payload)

    def _tool_output_risk(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        findings = payload.get("findings")
        risks = ", ".join(map(str, findings)) if isinstance(findings, list) else ""
        return (Note(f"the result of {text(payload.get('name'))} may be unsafe: {risks}", "warn"),)

    # -- requests of the agent

    def _approval_request(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self.approvals.approval_requested(payload, self._tools.open_calls)

    def _clarify_request(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...] | None:
        return self.approvals.question_asked(payload)

    def _sudo_request(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self.approvals.secret_requested("sudo.request", self._turns.session or "", payload)

    def _secret_request(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return self.approvals.secret_requested("secret.request", self._turns.session or "", payload)

    def _terminal_read_request(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        ignored = Ignored("terminal.read.request", "no screen exists")
        if self._is_observed:
            return (ignored,)
        params = {"session_id": self._turns.session, "request_id": payload.get("request_id"), "text": ""}
        return ignored, WriteStdin(self._rpc.request("terminal.read.respond", params))

    # -- notices

    def _review_summary(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return (Note(text(payload.get("text"))),)

    def _notification(self, payload: Mapping[str, Any]) -> tuple[CodecOutput, ...]:
        return (Note(text(payload.get("text")), "warn" if payload.get("level") in ("warn", "error") else "info"),)


def unknown_line(kind: str, line: bytes) -> tuple[CodecOutput, ...]:
    """Return the fact of a line that the reader does not know."""
    return (Unknown(kind, line.decode("utf-8", "replace")),)
