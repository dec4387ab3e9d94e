"""Turns: one prompt and all that is done about it, until Copilot hands back.

`assistant.idle` is Copilot's closing message: the main agent is done. Prompts that another client queued are taken up
without it. What Copilot does by itself after it (a background command ended, the autopilot goes on) is another turn.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.facts import (
    ContextCompacted,
    ContextFilling,
    Fact,
    Failure,
    Ignored,
    ImageTaken,
    Note,
    RunCost,
    Trouble,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnStopped,
)
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.copilot.agents import Agents
from agent_mux_adapters.copilot.failures import failure_of

FILLING = 0.8  # of the context window; the event spec (19) names this share
_QUEUED = "queued"


class Turns:
    """The turn that runs, and what is known of the context."""

    def __init__(self, agents: Agents, schema: Mapping[str, Any] | None) -> None:
        self._agents = agents
        self._schema = schema
        self._open = False
        self._failure: Failure | None = None
        self._context_used = 0
        self._context_size = 0
        self._warned = False
        self._held: list[ContextCompacted] = []
        """What became of the context between two turns: told in the next one, as alone it is no turn."""

    def prompted(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`user.message`: the main agent takes up a prompt, or something is put into the turn that runs."""
        images = [text(row.get("mimeType")) for row in rows(data.get("attachments"))]
        taken = tuple(ImageTaken(mime) for mime in images if mime.startswith("image/"))
        if self._open and data.get("delivery") != _QUEUED:
            return (*self._agents.main.prose.pause(), *taken) or (Ignored("user.message", "said in mid turn"),)
        before = self.over({}) if self._open else ()
        return *before, TurnBegin(), *self.begins(), *taken

    def begins(self) -> tuple[Fact, ...]:
        """Something is done."""
        self._open = True
        held, self._held = self._held, []
        return tuple(held)

    def failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`session.error`: the turn will end with it."""
        self._failure = failure_of(data, used_tokens=self._context_used, max_tokens=self._context_size)
        return (Ignored("session.error", "assistant.idle closes the turn with it"),)

    def over(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.idle`."""
        failure, aborted = self._failure, data.get("aborted") is True
        if not self._open and failure is None and not aborted:
            return (Ignored("assistant.idle", "no turn was open"),)
        main = self._agents.main
        cost, answer, run = main.spent_in_turn.cost, main.answer, self._agents.cost
        self._open, self._failure, main.answer = False, None, ""
        total = (RunCost(run),) if run is not None and cost is not None else ()
        closing = main.turn_over()
        if aborted:
            return *closing, *total, TurnStopped(cost)
        if failure is not None:
            return *closing, *total, TurnFailed(failure, cost)
        return *closing, *total, TurnDone(cost, self._structured(answer))

    def finish(self) -> tuple[Fact, ...]:
        """The process is gone: what no turn told is told."""
        failure, self._failure = self._failure, None
        trouble = (Trouble(failure.code, failure.message),) if failure is not None else ()
        late = (Note(f"the context was compacted after the last turn: {held.summary}") for held in self._held)
        return *trouble, *late

    @property
    def is_open(self) -> bool:
        """A prompt is worked on."""
        return self._open

    def _structured(self, answer: str) -> Any:
        """The last message as JSON, where an output schema was asked for; None when it is not."""
        if self._schema is None:
            return None
        try:
            return msgspec.json.decode(answer.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None

    # -- the context

    def context(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`session.usage_info`."""
        self._context_used, self._context_size = whole(data.get("currentTokens")), whole(data.get("tokenLimit"))
        if self._warned or not self._context_size or self._context_used < FILLING * self._context_size:
            return (Ignored("session.usage_info", "the context has room"),)
        self._warned = True
        return (ContextFilling(self._context_used, self._context_size),)

    def compacted(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`session.compaction_complete`: the model was asked for a summary."""
        used = self._agents.main.used(mapping(data.get("compactionTokensUsed")))
        if data.get("success") is not True:
            why = text(data.get("error")) or text(data.get("failureReason")) or "copilot does not say why"
            return *used, Trouble("AGENT_CRASH", f"the context could not be compacted: {why}")
        compacted = ContextCompacted(text(data.get("summaryContent")), whole(data.get("tokensRemoved")))
        total = (RunCost(cost),) if not self._open and (cost := self._agents.cost) is not None else ()
        return *used, *total, *self._compacted(compacted)

    def truncated(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`session.truncation`: the oldest of the context was left out."""
        removed = whole(data.get("tokensRemovedDuringTruncation"))
        if not removed:
            return (Ignored("session.truncation", "nothing was left out"),)
        return self._compacted(ContextCompacted("", removed))

    def _compacted(self, fact: ContextCompacted) -> tuple[Fact, ...]:
        self._warned = False
        if self._open:
            return (fact,)
        self._held.append(fact)
        return (Ignored("session.compaction_complete", "told when the next turn begins"),)
