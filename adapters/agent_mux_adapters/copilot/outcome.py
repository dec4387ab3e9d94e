"""The turns of the main agent and their ends, with failures and the state of the context.

`assistant.idle` is Copilot's closing message: the main agent has ended its turn. Prompts that another client queued are
taken up without it. What Copilot does on its own after it (when a background command ends, or the autopilot continues)
is another turn.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import (
    ContextCompacted,
    ContextFilling,
    Fact,
    Failure,
    Ignored,
    ImageAccepted,
    Note,
    RecoverableError,
    RunCost,
    TurnBegin,
    TurnFailed,
    TurnStopped,
)
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.stop_reasons import answered
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.copilot.agents import CopilotAgents

CONTEXT_WARNING_SHARE = 0.8  # of the context window; see docs/spec/events.md, section 19
_QUEUED = "queued"

# -- failures

_TYPES: Mapping[str, ErrorCode] = {
    "authentication": "AUTH_ERROR",
    "authorization": "AUTH_ERROR",
    "context_limit": "CONTEXT_EXCEEDED",
    "quota": "RATE_LIMITED",
    "rate_limit": "RATE_LIMITED",
}
_STATUSES: Mapping[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context length", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("prompt is too long", "CONTEXT_EXCEEDED"),
    ("no github oauth token", "AUTH_ERROR"),
    ("no authentication information", "AUTH_ERROR"),
    ("authentication failed", "AUTH_ERROR"),
    ("not authenticated", "AUTH_ERROR"),
    ("session not found", "SESSION_NOT_FOUND"),
    ("cannot fork session", "SESSION_NOT_FOUND"),
    ("no session, task, or name matched", "SESSION_NOT_FOUND"),
    ("require an explicit model", "VALIDATION_ERROR"),
    ("rate limit", "RATE_LIMITED"),
    ("no response was returned", "EMPTY_ANSWER"),
)


def error_code_of(message: str, kind: str = "", status: Any = None) -> ErrorCode:
    """Return the error code of a failure: by Copilot's own type, by the HTTP status, else by its prose."""
    if kind in _TYPES:
        return _TYPES[kind]
    if isinstance(status, int) and status in _STATUSES:
        return _STATUSES[status]
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), None) or network_code_of(message)


def failure_of(data: Mapping[str, Any], *, used_tokens: int = 0, max_tokens: int = 0) -> Failure:
    """Return the failure in a `session.error`. The counts are those of the context, 0 when unknown."""
    message = text(data.get("message")) or "copilot reported no reason for the failed turn"
    code = error_code_of(message, text(data.get("errorType")), data.get("statusCode"))
    full = code == "CONTEXT_EXCEEDED"
    return Failure(code, message, used_tokens=used_tokens if full else 0, max_tokens=max_tokens if full else 0)


# -- turns


class CopilotTurnReader:
    """Reader of the events of turns: facts about the turn of the main agent and about its context.

    It sends nothing; `CopilotTurns` sends the prompts.
    """

    def __init__(self, agents: CopilotAgents, schema: Mapping[str, Any] | None) -> None:
        self._agents = agents
        self._schema = schema
        self.is_open = False
        """Whether a turn runs."""
        self._failure: Failure | None = None
        """The failure that the turn will end with."""
        self._context_used = 0
        self._context_size = 0
        self._warned = False
        """Whether the fact about a filling context was returned since the last compaction."""
        self._compactions: list[ContextCompacted] = []
        """Compactions between two turns. The next turn emits them, because they are not a turn of their own."""

    def prompted(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `user.message` of the main agent: a prompt begins a turn, or is added to the running one."""
        images = [text(row.get("mimeType")) for row in rows(data.get("attachments"))]
        taken = tuple(ImageAccepted(mime) for mime in images if mime.startswith("image/"))
        if self.is_open and data.get("delivery") != _QUEUED:
            return (*self._agents.main.messages.close(), *taken) or (Ignored("user.message", "a message in mid turn"),)
        before = self.over({}) if self.is_open else ()
        return *before, TurnBegin(), *self.open(), *taken

    @property
    def is_pending(self) -> bool:
        """Whether a turn runs, or failed before it began, and its end was not emitted yet."""
        return self.is_open or self._failure is not None

    def open(self) -> tuple[Fact, ...]:
        """Open the turn, and return the compactions since the last one."""
        self.is_open = True
        compactions, self._compactions = self._compactions, []
        return tuple(compactions)

    def failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `session.error`: record the failure for the end of the turn."""
        self._failure = failure_of(data, used_tokens=self._context_used, max_tokens=self._context_size)
        return (Ignored("session.error", "assistant.idle closes the turn with it"),)

    def over(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `assistant.idle`: return the end of the turn."""
        failure, aborted = self._failure, data.get("aborted") is True
        if not self.is_pending and not aborted:
            return (Ignored("assistant.idle", "no turn was open"),)
        main = self._agents.main
        cost, last_message, run = main.spent_in_turn.cost, main.last_message, self._agents.cost
        reason = main.finish_reason
        self.is_open, self._failure, main.last_message, main.finish_reason = False, None, "", ""
        total = (RunCost(run),) if run is not None and cost is not None else ()
        closing = main.turn_over()
        if aborted:
            return *closing, *total, TurnStopped(cost)
        if failure is not None:
            return *closing, *total, TurnFailed(failure, cost)
        return *closing, *total, answered(reason, cost, self._parse_structured_output(last_message))

    def finish(self) -> tuple[Fact, ...]:
        """Return the failure and the compactions that no turn has emitted, when the process has exited."""
        failure, self._failure = self._failure, None
        trouble = (RecoverableError(failure.code, failure.message),) if failure is not None else ()
        late = (Note(f"the context was compacted after the last turn: {fact.summary}") for fact in self._compactions)
        return *trouble, *late

    def _parse_structured_output(self, last_message: str) -> Any:
        """Parse the last message as JSON when the run has an output schema; None on invalid JSON."""
        if self._schema is None:
            return None
        try:
            return msgspec.json.decode(last_message.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None

    # -- the context

    def context_measured(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `session.usage_info`: record the size of the context, and warn once when it fills."""
        self._context_used, self._context_size = whole(data.get("currentTokens")), whole(data.get("tokenLimit"))
        if self._warned or not self._context_size or self._context_used < CONTEXT_WARNING_SHARE * self._context_size:
            return (Ignored("session.usage_info", "the context is not filling up"),)
        self._warned = True
        return (ContextFilling(self._context_used, self._context_size),)

    def compacted(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `session.compaction_complete`: return the summary by the model and the tokens of that call."""
        used = self._agents.main.tokens_used(mapping(data.get("compactionTokensUsed")))
        if data.get("success") is not True:
            why = text(data.get("error")) or text(data.get("failureReason")) or "copilot reported no reason"
            return *used, RecoverableError("AGENT_CRASH", f"the context could not be compacted: {why}")
        compaction = ContextCompacted(text(data.get("summaryContent")), whole(data.get("tokensRemoved")))
        total = (RunCost(cost),) if not self.is_open and (cost := self._agents.cost) is not None else ()
        return *used, *total, *self._emit_or_defer(compaction)

    def truncated(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `session.truncation`: the oldest part of the context was removed."""
        removed = whole(data.get("tokensRemovedDuringTruncation"))
        if not removed:
            return (Ignored("session.truncation", "nothing was removed"),)
        return self._emit_or_defer(ContextCompacted("", removed))

    def _emit_or_defer(self, compaction: ContextCompacted) -> tuple[Fact, ...]:
        self._warned = False
        if self.is_open:
            return (compaction,)
        self._compactions.append(compaction)
        return (Ignored("session.compaction_complete", "emitted at the start of the next turn"),)
