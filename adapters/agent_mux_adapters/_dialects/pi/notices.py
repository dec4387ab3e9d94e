"""Notices, retries and compactions of the session, and the lines and roles that are ignored, each with its reason."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.pi.outcome import retrying
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text, whole

Facts = tuple[facts.Fact, ...]


IGNORED_LINES: Mapping[str, str] = {
    "bash_execution_update": "a command of the client, not of the agent",
    "entry_appended": "bookkeeping of the session file",
    "queue_update": "the queue of the client",
    "session_info_changed": "the name of the session",
    "summarization_retry_attempt_start": "emitted when the retry was scheduled",
    "summarization_retry_finished": "the end of the compaction follows",
    "thinking_level_changed": "a setting",
}

IGNORED_ROLES: Mapping[str, str] = {
    "bashExecution": "a command of the client, not of the agent",
    "branchSummary": "a summary of another branch, for the model",
    "compactionSummary": "emitted at the end of the compaction",
    "custom": "a message that an extension injected",
    "developer": "a message that the agent injected",
    "system": "the agent's instructions",
    "toolResult": "emitted at the end of the execution",
    "user": "the prompt",
}


def ignored_role(kind: str, role: str) -> Facts | None:
    """Return the ignored fact for a message of this role; None for an unknown role."""
    return (facts.Ignored(f"{kind}/{role}", IGNORED_ROLES[role]),) if role in IGNORED_ROLES else None


def compaction_facts(line: Mapping[str, Any], *, in_turn: bool) -> Facts:
    """Read the line that ends a compaction, in either agent's shape; between turns, a client asked for it."""
    result = mapping(line.get("result"))
    before, after = whole(result.get("tokensBefore")), optional_whole(result.get("estimatedTokensAfter"))
    if result and not in_turn:
        return (facts.Note(f"the context was compacted: {text(result.get('summary'))}"),)
    if result:
        saved = max(before - after, 0) if after is not None else 0
        return (facts.ContextCompacted(text(result.get("summary")), saved),)
    error = text(line.get("errorMessage"))
    return (facts.Note(error, "warn"),) if error else ()


def summary_retry(line: Mapping[str, Any]) -> Facts:
    """Read `summarization_retry_scheduled`: the model call of a compaction is repeated."""
    delay, reason = whole(line.get("delayMs")), text(line.get("errorMessage"))
    return retrying(whole(line.get("attempt")), whole(line.get("maxAttempts")), delay, reason or "unknown")


def notice_of(line: Mapping[str, Any]) -> Facts:
    """Read a `notice`; every level but `info` is a warning."""
    message = text(line.get("message")) or "an empty notice"
    return (facts.Note(message, "info" if line.get("level") == "info" else "warn"),)


def fallback_model(line: Mapping[str, Any]) -> Facts:
    """Read `retry_fallback_applied`: another model replaces the one that failed."""
    return (facts.Note(f"the agent continues with {text(line.get('to'))} instead of {text(line.get('from'))}", "warn"),)
