"""The JSON document that `agent exec --json` and `agent --local --json` print when all is over."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux.events.cost import CostRecord
from agent_mux.facts import (
    Fact,
    Failure,
    ImageProduced,
    Note,
    SessionKnown,
    Text,
    Thinking,
    TurnDone,
    TurnFailed,
    Usage,
)
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, rows, text, whole
from agent_mux_adapters.openclaw.failures import failure_of

TRANSIENT = "transient-"
_IMAGES = {".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}


def is_document(native: Mapping[str, Any]) -> bool:
    """One of the two, or the error that the command prints instead."""
    if isinstance(native.get("status"), str) and isinstance(native.get("payloads"), list):
        return True
    return is_local(native) or (native.get("ok") is False and "error" in native)


def is_local(native: Mapping[str, Any]) -> bool:
    """The document of `agent --local`, which has everything else in `meta`."""
    return isinstance(native.get("payloads"), list) and isinstance(native.get("meta"), dict)


def facts_of(native: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Everything that a document tells."""
    agent = mapping(mapping(native.get("meta")).get("agentMeta")) if is_local(native) else native
    usage = usage_of(mapping(agent.get("usage")))
    told = [*_session(native, agent), *_notes(native), *_said(native), *([usage] if usage is not None else [])]
    return *told, _closing(native, cost_of(agent.get("costUsd"), usage))


def _session(native: Mapping[str, Any], agent: Mapping[str, Any]) -> Iterator[Fact]:
    session = text(agent.get("sessionId"))
    if session:
        # `agent exec` deletes its state at the end: there is nothing to go on with.
        yield SessionKnown(session if is_local(native) else TRANSIENT + session, model=text(agent.get("model")) or None)


def _notes(native: Mapping[str, Any]) -> Iterator[Fact]:
    summary = mapping((mapping(native.get("meta")) if is_local(native) else native).get("toolSummary"))
    calls, failures = whole(summary.get("calls")), whole(summary.get("failures"))
    if calls:
        tools = summary.get("tools")
        names = ", ".join(name for name in tools if isinstance(name, str)) if isinstance(tools, list) else ""
        yield Note(f"openclaw called tools {calls} times ({names}), {failures} failed; it does not tell more of them")


def _said(native: Mapping[str, Any]) -> Iterator[Fact]:
    payloads = [payload for payload in rows(native.get("payloads")) if payload.get("isError") is not True]
    for payload in payloads:
        said = text(payload.get("text"))
        if said:
            yield Thinking(said) if payload.get("isReasoning") is True else Text(said)
        yield from _images(payload)
    if not payloads and text(native.get("final")):
        yield Text(text(native.get("final")))


def _images(payload: Mapping[str, Any]) -> Iterator[Fact]:
    place = text(payload.get("mediaUrl"))
    kind = next((kind for ending, kind in _IMAGES.items() if place.lower().endswith(ending)), None)
    if kind is not None:
        yield ImageProduced(kind, file_path=place.removeprefix("file://"))


def _closing(native: Mapping[str, Any], cost: CostRecord | None) -> Fact:
    failure = _local_failure(native) if is_local(native) else _failure(native)
    return TurnDone(cost) if failure is None else TurnFailed(failure, cost)


def _failure(native: Mapping[str, Any]) -> Failure | None:
    status = text(native.get("status"))
    if status == "ok":
        return None
    error = native.get("error")
    message = text(mapping(error).get("message")) or text(error) or _error_payload(native)
    return failure_of(
        message or f"openclaw ended with status {status or 'unknown'}", reason=_of_status(message, status)
    )


def _of_status(message: str, status: str) -> str:
    """A time-out that has a better reason is called after it."""
    return "timeout" if status == "timeout" and failure_of(message).code == "AGENT_CRASH" else ""


def _local_failure(native: Mapping[str, Any]) -> Failure | None:
    meta, said = mapping(native.get("meta")), _error_payload(native)
    error = mapping(meta.get("error"))
    if error or said:
        return failure_of(text(error.get("message")) or said, reason=text(error.get("kind")))
    if meta.get("aborted") is True or meta.get("stopReason") == "error":
        return failure_of("openclaw stopped before it was done")
    return None


def _error_payload(native: Mapping[str, Any]) -> str:
    errors = [text(payload.get("text")) for payload in rows(native.get("payloads")) if payload.get("isError") is True]
    return next((error for error in errors if error), "")


def usage_of(usage: Mapping[str, Any]) -> Usage | None:
    """All model calls together. The input is apart from what was in the cache."""
    if not usage:
        return None
    return Usage(
        whole(usage.get("input")),
        whole(usage.get("output")),
        optional_whole(usage.get("reasoningTokens")),
        optional_whole(usage.get("cacheRead")),
        optional_whole(usage.get("cacheWrite")),
        of_one_call=False,
    )


def cost_of(said: Any, usage: Usage | None) -> CostRecord | None:
    """What they cost in USD, if OpenClaw knows it."""
    amount = dollars(said)
    if usage is None or not amount:  # 0 for a model without prices
        return None
    return CostRecord(
        total_usd=amount,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source="native",
    )
