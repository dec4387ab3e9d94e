"""Stored events of one transcript, as facts. Their format resembles that of the agents of Pi's dialect.

Tool results are stored in the format of ACP, so the reader of ACP tool calls reads them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.session_files import parse_timestamp
from agent_mux.sdk.sessions import (
    ModelCalled,
    PromptSent,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    TurnEndBuffer,
    UnreadableSessionError,
)
from agent_mux_adapters._dialects.acp.tools import AcpTools
from agent_mux_adapters._dialects.tolerant import dollars, mapping, rows, text, whole
from agent_mux_adapters.openclaw.messages import HIDDEN_ANSWERS
from agent_mux_adapters.openclaw.outcome import failure_of
from agent_mux_adapters.openclaw.tools import CATALOG_TOOL, OpenClawTools
from agent_mux_adapters.openclaw.usage import usage_of

_NEWEST_VERSION = 4
"""The newest version of the event format that this module reads."""
_CONTINUES_WITH_TOOLS = "toolUse"
_DELIVERY_MIRROR = "delivery-mirror"
"""Replaces the model's name where an answer is stored a second time, as it was delivered to a channel."""
_AUTOMATIC = frozenset({"inter_session", "internal_system"})
"""Provenance of messages of the user that no person typed."""


class StoredEvents:
    """Reads the events of one transcript."""

    def __init__(self) -> None:
        self._tools = AcpTools(OpenClawTools(), "")
        self._closing = TurnEndBuffer()
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Iterable[SessionFact]]] = {
            "session": self._session,
            "session_info": lambda event: (SessionDescribed(title=text(event.get("name")) or None),),
            "compaction": lambda event: (facts.ContextCompacted(text(event.get("summary"))),),
            "message": self._message,
        }

    def read(self, event: Mapping[str, Any], *, is_abandoned: bool = False) -> Iterator[SessionEntry]:
        """Yield the entries of one event. Of an abandoned branch, only the usage counts."""
        at = parse_timestamp(event.get("timestamp"))
        kind = text(event.get("type"))
        reader = self._readers.get(kind) if kind == "session" or not is_abandoned else None
        yield from self._closing.pass_on(at, reader(event) if reader is not None else ())
        for call in _model_calls(event):
            yield SessionEntry(at, call)

    def close(self) -> Iterator[SessionEntry]:
        """Yield the closing that was held back, as no event follows for now."""
        return self._closing.release()

    def _session(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        version = whole(event.get("version"))
        if version > _NEWEST_VERSION:
            raise UnreadableSessionError(
                f"its events have version {version}; {_NEWEST_VERSION} is the newest that is known"
            )
        cwd = text(event.get("cwd"))
        self._tools = AcpTools(OpenClawTools(), cwd)
        return (SessionDescribed(cwd=cwd or None),)

    def _message(self, event: Mapping[str, Any]) -> Iterable[SessionFact]:
        message = mapping(event.get("message"))
        match message.get("role"):
            case "assistant" if message.get("model") != _DELIVERY_MIRROR:
                return self._assistant(message)
            case "toolResult":
                return self._tools.updated(_acp_result(message))
            case "user" if text(mapping(message.get("provenance")).get("kind")) in _AUTOMATIC:
                return (facts.TurnBegin(),)
            case "user":
                return (PromptSent(_text_of(message.get("content"))),)
        return ()

    def _assistant(self, message: Mapping[str, Any]) -> Iterable[SessionFact]:
        self._closing.forget()
        yield facts.StepBegin()
        for block in rows(message.get("content")):
            yield from self._block(block)
        reason, error = text(message.get("stopReason")), text(message.get("errorMessage"))
        if reason == "aborted" or mapping(message.get("openclawAbort")).get("aborted") is True:
            yield facts.TurnStopped()
        elif reason == "error":
            yield facts.TurnFailed(failure_of(error))
        elif reason != _CONTINUES_WITH_TOOLS:
            yield facts.TurnDone()

    def _block(self, block: Mapping[str, Any]) -> Iterable[SessionFact]:
        match block.get("type"):
            case "text" if text(block.get("text")).strip() not in HIDDEN_ANSWERS:
                return (facts.WholeText(text(block["text"])),)
            case "thinking" if text(block.get("thinking")).strip():
                return (facts.WholeThinking(text(block["thinking"])),)
            case "toolCall":
                return self._tools.announced(_acp_call(block))
        return ()


def _acp_call(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored call in the format of ACP; a call through the catalog becomes the call that it makes."""
    name, arguments = text(block.get("name")), block.get("arguments")
    if name == CATALOG_TOOL and text(mapping(arguments).get("id")):
        name, arguments = mapping(arguments)["id"], mapping(arguments).get("args", {})
    return {"toolCallId": block.get("id"), "title": name, "rawInput": arguments, "status": "in_progress"}


def _acp_result(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored result in the format of ACP.

    The result of a call through the catalog contains a warning for the model; its details have the result without it.
    """
    result: Mapping[str, Any] = message
    if message.get("toolName") == CATALOG_TOOL:
        result = mapping(mapping(message.get("details")).get("result")) or message
    content = result.get("content")
    return {
        "toolCallId": message.get("toolCallId"),
        "status": "failed" if message.get("isError") is True else "completed",
        "content": [{"type": "content", "content": block} for block in rows(content)],
        "rawOutput": {"content": content, "details": result.get("details")},
    }


def _model_calls(event: Mapping[str, Any]) -> Iterable[SessionFact]:
    message = mapping(event.get("message"))
    native_usage = mapping(message.get("usage"))
    usage = usage_of(native_usage)
    if usage is None or not usage.input_tokens + usage.output_tokens:
        return ()
    key = f"{text(message.get('responseId')) or text(event.get('id'))}/{whole(message.get('timestamp'))}"
    cost = dollars(mapping(native_usage.get("cost")).get("total")) or None
    return (ModelCalled(key, text(message.get("model")), usage, cost),)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content) if block.get("type") == "text")
