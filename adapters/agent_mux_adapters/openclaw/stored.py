"""The stored events of one transcript, as facts. They look like those of the agents of Pi's dialect.

What came of a tool is stored as ACP tells it, so that its reader makes sense of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.sessions.closing import HeldClosing
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Described, Entry, ModelCalled, Prompted, Told, UnreadableError
from agent_mux_adapters._dialects.acp.tools import AcpTools
from agent_mux_adapters._dialects.tolerant import dollars, mapping, rows, text, whole
from agent_mux_adapters.openclaw.answers import SILENCE
from agent_mux_adapters.openclaw.document import usage_of
from agent_mux_adapters.openclaw.failures import failure_of
from agent_mux_adapters.openclaw.tools import CATALOG_TOOL, OpenClawTools

NEWEST = 4
"""Version of the events that are understood."""
GOES_ON = "toolUse"
MIRROR = "delivery-mirror"
"""In place of the model, where an answer is stored once more, as it was delivered somewhere."""
NOBODY = frozenset({"inter_session", "internal_system"})
"""Where a message of the user is from, when nobody typed it."""


class StoredEvents:
    """Reads the events of one transcript."""

    def __init__(self) -> None:
        self._tools = AcpTools(OpenClawTools(), "")
        self._closing = HeldClosing()
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Iterable[Told]]] = {
            "session": self._session,
            "session_info": lambda event: (Described(title=text(event.get("name")) or None),),
            "compaction": lambda event: (facts.ContextCompacted(text(event.get("summary"))),),
            "message": self._message,
        }

    def read(self, event: Mapping[str, Any], *, is_left: bool = False) -> Iterator[Entry]:
        """What an event says. `is_left`: it is in a branch that was left."""
        at = milliseconds_of(event.get("timestamp"))
        kind = text(event.get("type"))
        reader = self._readers.get(kind) if kind == "session" or not is_left else None
        yield from self._closing.passed_on(at, reader(event) if reader is not None else ())
        for call in _called(event):
            yield Entry(at, call)

    def close(self) -> Iterator[Entry]:
        """Nothing follows, for now."""
        return self._closing.release()

    def _session(self, event: Mapping[str, Any]) -> Iterable[Told]:
        version = whole(event.get("version"))
        if version > NEWEST:
            raise UnreadableError(f"its events have version {version}; {NEWEST} is the newest that is known")
        cwd = text(event.get("cwd"))
        self._tools = AcpTools(OpenClawTools(), cwd)
        return (Described(cwd=cwd or None),)

    def _message(self, event: Mapping[str, Any]) -> Iterable[Told]:
        message = mapping(event.get("message"))
        match message.get("role"):
            case "assistant" if message.get("model") != MIRROR:
                return self._answered(message)
            case "toolResult":
                return self._tools.updated(_result_of(message))
            case "user" if mapping(message.get("provenance")).get("kind") in NOBODY:
                return (facts.TurnBegin(),)
            case "user":
                return (Prompted(_words(message.get("content"))),)
        return ()

    def _answered(self, message: Mapping[str, Any]) -> Iterable[Told]:
        self._closing.forget()
        yield facts.StepBegin()
        for block in rows(message.get("content")):
            yield from self._block(block)
        reason, error = text(message.get("stopReason")), text(message.get("errorMessage"))
        if reason == "aborted" or mapping(message.get("openclawAbort")).get("aborted") is True:
            yield facts.TurnStopped()
        elif reason == "error":
            yield facts.TurnFailed(failure_of(error))
        elif reason != GOES_ON:
            yield facts.TurnDone()

    def _block(self, block: Mapping[str, Any]) -> Iterable[Told]:
        match block.get("type"):
            case "text" if text(block.get("text")).strip() not in SILENCE:
                return (facts.Text(text(block["text"])),)
            case "thinking" if text(block.get("thinking")).strip():
                return (facts.Thinking(text(block["thinking"])),)
            case "toolCall":
                return self._tools.announced(_call_of(block))
        return ()


def _call_of(block: Mapping[str, Any]) -> Mapping[str, Any]:
    name, arguments = text(block.get("name")), block.get("arguments")
    if name == CATALOG_TOOL and text(mapping(arguments).get("id")):  # told as the call that it makes
        name, arguments = mapping(arguments)["id"], mapping(arguments).get("args", {})
    return {"toolCallId": block.get("id"), "title": name, "rawInput": arguments, "status": "in_progress"}


def _result_of(message: Mapping[str, Any]) -> Mapping[str, Any]:
    told: Mapping[str, Any] = message
    if message.get("toolName") == CATALOG_TOOL:  # shown to the model with a warning around it
        told = mapping(mapping(message.get("details")).get("result")) or message
    content = told.get("content")
    return {
        "toolCallId": message.get("toolCallId"),
        "status": "failed" if message.get("isError") is True else "completed",
        "content": [{"type": "content", "content": block} for block in rows(content)],
        "rawOutput": {"content": content, "details": told.get("details")},
    }


def _called(event: Mapping[str, Any]) -> Iterable[Told]:
    message = mapping(event.get("message"))
    said = mapping(message.get("usage"))
    usage = usage_of(said)
    if usage is None or not usage.input_tokens + usage.output_tokens:
        return ()
    key = f"{text(message.get('responseId')) or text(event.get('id'))}/{whole(message.get('timestamp'))}"
    return (
        ModelCalled(key, text(message.get("model")), usage, dollars(mapping(said.get("cost")).get("total")) or None),
    )


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content) if block.get("type") == "text")
