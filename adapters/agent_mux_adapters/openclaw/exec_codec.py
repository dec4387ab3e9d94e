"""`openclaw agent exec --json`: no output until the end, then one JSON document over many lines.

`openclaw agent --local --json` prints a similar document, with everything but the payloads in `meta`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.codec import AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import (
    Fact,
    Failure,
    Ignored,
    ImageProduced,
    LogLine,
    Note,
    SessionKnown,
    TurnDone,
    TurnFailed,
    WholeText,
    WholeThinking,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole
from agent_mux_adapters.openclaw.outcome import cause_in, failure_of, retry_in
from agent_mux_adapters.openclaw.usage import cost_of, usage_of

_PART = Ignored("document", "part of one JSON document")
_TRANSIENT_PREFIX = "transient-"
"""Before the id of a session that `agent exec` deletes at its end, so that it cannot be resumed."""
CUT = "⚠️ Reply truncated at the model's output token limit"
"""Beginning of the payload that OpenClaw adds to an answer that ended at its token limit."""
_IMAGES = {".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}


class OpenClawExecCodec:
    """Codec that collects the lines of the document until it is complete. The program reads no input."""

    def __init__(self, context: CodecContext) -> None:  # noqa: ARG002  # the document depends on none of it
        self._lines: list[bytes] = []
        self._is_complete = False
        self._cause = ""
        """Why the last model call failed, as the log has it; the document has OpenClaw's own words for it."""

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the prompt is on stdin from the start."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Collect one line of stdout, and return the facts of the document at its last line."""
        if source is not Source.STDOUT:
            shown = line.decode("utf-8", "replace")
            self._cause = cause_in(shown) or self._cause
            return LogLine(shown, "stderr"), *(() if self._is_complete else retry_in(shown))
        if self._is_complete or (not self._lines and not line.startswith(b"{")):
            return (LogLine(line.decode("utf-8", "replace")),)
        self._lines.append(line)
        # In a document over several lines, only the last one begins with the brace that closes it.
        return self._read() if line.startswith(b"}") or len(self._lines) == 1 else (_PART,)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the effects of an action: the program can be signalled, and reads nothing."""
        return one_shot_action(action, "openclaw agent exec")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return the collected lines as log lines: they did not become a document."""
        rest, self._lines = self._lines, []
        return tuple(LogLine(line.decode("utf-8", "replace")) for line in rest)

    def _read(self) -> tuple[Fact, ...]:
        native = load_object(b"\n".join(self._lines))
        if native is None:
            return (_PART,)
        rest, self._lines = self._lines, []
        if not is_document(native):
            return tuple(LogLine(line.decode("utf-8", "replace")) for line in rest)
        self._is_complete = True
        return facts_of(native, self._cause)


# -- the document


def is_document(value: Any) -> bool:
    """Return whether this is a document of either command, or the error that it prints instead."""
    native = mapping(value)
    if isinstance(native.get("status"), str) and isinstance(native.get("payloads"), list):
        return True
    return _is_local(native) or (native.get("ok") is False and "error" in native)


def _is_local(native: Mapping[str, Any]) -> bool:
    """Return whether this is a document of `agent --local`."""
    return isinstance(native.get("payloads"), list) and isinstance(native.get("meta"), dict)


def facts_of(native: Mapping[str, Any], cause: str = "") -> tuple[Fact, ...]:
    """Return all facts of a document, with the closing message of the turn last; `cause`: see `failure_of`."""
    agent = mapping(mapping(native.get("meta")).get("agentMeta")) if _is_local(native) else native
    usage = usage_of(mapping(agent.get("usage")))
    usage_facts = [usage] if usage is not None else []
    facts = [*_session(native, agent), *_tool_summary(native), *_messages(native), *usage_facts]
    return *facts, _closing(native, cost_of(agent.get("costUsd"), usage), cause)


def _session(native: Mapping[str, Any], agent: Mapping[str, Any]) -> Iterator[Fact]:
    session = text(agent.get("sessionId"))
    if session:
        session_id = session if _is_local(native) else _TRANSIENT_PREFIX + session
        yield SessionKnown(session_id, model=text(agent.get("model")) or None)


def _tool_summary(native: Mapping[str, Any]) -> Iterator[Fact]:
    summary = mapping((mapping(native.get("meta")) if _is_local(native) else native).get("toolSummary"))
    calls, failures = whole(summary.get("calls")), whole(summary.get("failures"))
    if calls:
        tools = summary.get("tools")
        names = ", ".join(name for name in tools if isinstance(name, str)) if isinstance(tools, list) else ""
        yield Note(
            f"openclaw called tools {calls} times ({names}), {failures} failed; it reports nothing else about them"
        )


def _messages(native: Mapping[str, Any]) -> Iterator[Fact]:
    payloads = [payload for payload in rows(native.get("payloads")) if payload.get("isError") is not True]
    for payload in payloads:
        content = text(payload.get("text"))
        if content and not content.startswith(CUT):
            yield WholeThinking(content) if payload.get("isReasoning") is True else WholeText(content)
        yield from _images(payload)
    if not payloads and text(native.get("final")):
        yield WholeText(text(native.get("final")))


def _images(payload: Mapping[str, Any]) -> Iterator[Fact]:
    location = text(payload.get("mediaUrl"))
    mime_type = next((kind for suffix, kind in _IMAGES.items() if location.lower().endswith(suffix)), None)
    if mime_type is not None:
        yield ImageProduced(mime_type, file_path=location.removeprefix("file://"))


# -- how the turn ended


def _closing(native: Mapping[str, Any], cost: CostRecord | None, cause: str) -> Fact:
    failure = _local_failure(native, cause) if _is_local(native) else _exec_failure(native, cause)
    if failure is not None:
        return TurnFailed(failure, cost)
    is_cut = any(text(payload.get("text")).startswith(CUT) for payload in rows(native.get("payloads")))
    return TurnDone(cost, stop_reason="length" if is_cut else None)


def _exec_failure(native: Mapping[str, Any], cause: str) -> Failure | None:
    status = text(native.get("status"))
    if status == "ok":
        return None
    error = native.get("error")
    message = text(mapping(error).get("message")) or text(error) or _error_payload(native)
    # The reason in the message takes precedence over the status of a time-out.
    is_timeout = status == "timeout" and failure_of(message).code == "AGENT_CRASH"
    message = message or f"openclaw ended with status {status or 'unknown'}"
    return failure_of(message, reason="timeout" if is_timeout else "", cause=cause)


def _local_failure(native: Mapping[str, Any], cause: str) -> Failure | None:
    meta, error_text = mapping(native.get("meta")), _error_payload(native)
    error = mapping(meta.get("error"))
    if error or error_text:
        return failure_of(text(error.get("message")) or error_text, reason=text(error.get("kind")), cause=cause)
    if meta.get("aborted") is True or meta.get("stopReason") == "error":
        return failure_of("openclaw stopped before it had finished")
    return None


def _error_payload(native: Mapping[str, Any]) -> str:
    errors = [text(payload.get("text")) for payload in rows(native.get("payloads")) if payload.get("isError") is True]
    return next((error for error in errors if error), "")
