"""The events of the gateway, as facts: one small function for each kind."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import WriteStdin
from agent_mux.facts import Fact, Ignored, Note, TurnBegin, TurnFailed, Unknown
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.hermes.asks import Asks
from agent_mux_adapters.hermes.calls import DELEGATION, QUESTION, Calls, error_of
from agent_mux_adapters.hermes.conversation import Conversation
from agent_mux_adapters.hermes.delegation import Delegation, background_id, collected_id
from agent_mux_adapters.hermes.failures import failure_of
from agent_mux_adapters.hermes.meter import Meter
from agent_mux_adapters.hermes.servers import Servers
from agent_mux_adapters.hermes.silent import ELSEWHERE, SILENT
from agent_mux_adapters.hermes.turn import Turn
from agent_mux_adapters.hermes.wire import TEXT, Event

Reader = Callable[[Mapping[str, Any]], tuple[Step, ...] | None]


class Events:
    """What is known of a run while its events come in."""

    def __init__(self, context: CodecContext, rpc: JsonRpcClient, conversation: Conversation) -> None:
        self._rpc = rpc
        self._is_observed = context.prompt is None
        self._conversation = conversation
        self._servers = Servers(server.name for server in context.mcp_servers)
        self._calls = Calls(context.cwd, self._servers)
        self._meter = Meter()
        self._delegation = Delegation(self._meter)
        self._turn = Turn()
        self.asks = Asks(rpc, is_observed=self._is_observed)
        self._readers: dict[str, Reader] = {
            "approval.request": self._approval,
            "clarify.request": self._question,
            "error": self._failed,
            "message.complete": self._completed,
            "message.delta": self._delta,
            "message.interim": self._interim,
            "message.start": self._started,
            "notification.show": self._notice,
            "reasoning.delta": self._reasoning,
            "review.summary": self._review,
            "secret.request": self._secret,
            "status.update": self._status,
            "sudo.request": self._sudo,
            "terminal.read.request": self._screen,
            "thinking.delta": self._animation,
            "tool.complete": self._tool_ended,
            "tool.generating": self._generating,
            "tool.output_risk": self._risky,
            "tool.start": self._tool_started,
        }

    def fragment(self, kind: str, session: str, said: str) -> tuple[Step, ...]:
        """A fragment of text or of reasoning."""
        if not self._is_ours(session):
            return (Ignored(kind, ELSEWHERE),)
        return self._turn.say(said) if kind == TEXT else self._turn.think(said)

    def told(self, event: Event) -> tuple[Step, ...] | None:
        """Any event; None when it is not known."""
        if event.kind == "session.info":
            return self._info(event)
        reader = self._readers.get(event.kind)
        is_known = reader is not None or event.kind in SILENT or event.kind.startswith("subagent.")
        if not is_known:
            return None
        if not self._is_ours(event.session):
            return (Ignored(event.kind, ELSEWHERE),)
        if event.kind in SILENT:
            return (Ignored(event.kind, SILENT[event.kind]),)
        return self._delegation.told(event.kind, event.payload) if reader is None else reader(event.payload)

    def _is_ours(self, session: str) -> bool:
        return not session or self._conversation.session in (None, session)

    def _info(self, event: Event) -> tuple[Step, ...]:
        payload = event.payload
        told = self._conversation.info(event.session, payload)
        if not self._is_ours(event.session):
            return told or (Ignored(event.kind, ELSEWHERE),)
        failures = self._servers.seen(payload.get("mcp_servers"))
        if payload.get("yolo") is not None:
            self._calls.unasked = payload["yolo"] is True
        return (*told, *failures) or (Ignored(event.kind, "nothing new of the session"),)

    # -- turns

    def _started(self, _: Mapping[str, Any]) -> tuple[Step, ...]:
        if self._turn.is_open:
            return (Ignored("message.start", "the turn has begun"),)  # told twice where nobody sent a prompt
        self._turn = Turn(is_open=True)
        steps = self._conversation.turn_started()
        facts = [step for step in steps if isinstance(step, Fact)]
        return *facts, TurnBegin(), *(step for step in steps if not isinstance(step, Fact))

    def _delta(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self._turn.say(text(payload.get("text")))

    def _reasoning(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self._turn.think(text(payload.get("text")))

    def _animation(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self._turn.animation(text(payload.get("text")))

    def _interim(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self._turn.interim(text(payload.get("text")), is_told=payload.get("already_streamed") is True)

    def _completed(self, payload: Mapping[str, Any]) -> tuple[Step, ...] | None:
        closing = self._turn.complete(payload)
        if closing is None:
            return None
        usage = payload.get("usage")
        spent = self._meter.turn_over(usage) if isinstance(usage, dict) else ()
        warning = text(payload.get("warning"))
        notes = (Note(warning, "warn"),) if warning else ()
        self._calls.forget()
        self._conversation.turn_over()
        return *self.asks.turn_over(), *notes, *closing[:-1], *spent, closing[-1]

    def _failed(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        message = text(payload.get("message"))
        self._turn.is_open = False
        self._calls.forget()
        return *self.asks.turn_over(), TurnFailed(failure_of(message)), *self._conversation.failed()

    def _status(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        said = text(payload.get("text"))
        self._turn.status(said)
        if payload.get("kind") == "process":
            self._conversation.reports.now(said)
            return (Note(said),)
        return (Note(said, "info" if payload.get("kind") == "compacting" else "warn"),)

    # -- tools

    def _generating(self, _: Mapping[str, Any]) -> tuple[Step, ...]:
        return self._turn.calls_tool()

    def _tool_started(self, payload: Mapping[str, Any]) -> tuple[Step, ...] | None:
        if not text(payload.get("tool_id")) or not text(payload.get("name")):
            return None
        if payload["name"] in (DELEGATION, QUESTION):
            return self._turn.pause() or (Ignored("tool.start", "told by what it asks, or starts"),)
        told = *self._turn.pause(), *self._calls.begun(payload)
        return told or (Ignored("tool.start", "told with its input when it ends"),)

    def _tool_ended(self, payload: Mapping[str, Any]) -> tuple[Step, ...] | None:
        if not text(payload.get("tool_id")) or not text(payload.get("name")):
            return None
        self._conversation.tool_ended()
        started, collected = background_id(payload), collected_id(payload)
        if started is not None:
            self._conversation.reports.later(started)
        if collected is not None:
            self._conversation.reports.no_more(collected)
        settled = *self.asks.call_over(payload), *self.asks.denied_by_rule(payload)
        if payload["name"] == DELEGATION:
            return *settled, *self._delegation.called(payload)
        if payload["name"] == QUESTION and error_of(payload.get("result")) is None:
            return settled or (Ignored("tool.complete", "the answer is known"),)
        return *settled, *self._calls.done(payload)

    def _risky(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        findings = payload.get("findings")
        why = ", ".join(map(str, findings)) if isinstance(findings, list) else ""
        return (Note(f"the result of {text(payload.get('name'))} may be unsafe: {why}", "warn"),)

    # -- questions

    def _approval(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self.asks.approval(payload, self._calls.open)

    def _question(self, payload: Mapping[str, Any]) -> tuple[Step, ...] | None:
        return self.asks.question(payload)

    def _sudo(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self.asks.secret("sudo.request", self._conversation.session or "", payload)

    def _secret(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return self.asks.secret("secret.request", self._conversation.session or "", payload)

    def _screen(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        known = Ignored("terminal.read.request", "there is no screen to read")
        if self._is_observed:
            return (known,)
        params = {"session_id": self._conversation.session, "request_id": payload.get("request_id"), "text": ""}
        return known, WriteStdin(self._rpc.request("terminal.read.respond", params))

    # -- remarks

    def _review(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return (Note(text(payload.get("text"))),)

    def _notice(self, payload: Mapping[str, Any]) -> tuple[Step, ...]:
        return (Note(text(payload.get("text")), "warn" if payload.get("level") in ("warn", "error") else "info"),)


def unknown(kind: str, line: bytes) -> tuple[Step, ...]:
    """A line that is not known."""
    return (Unknown(kind, line.decode("utf-8", "replace")),)
