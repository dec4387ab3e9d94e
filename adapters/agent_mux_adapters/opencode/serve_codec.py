"""`opencode serve` behind the bridge: its events, our requests and the answers to them, one JSON object per line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.actions import AnyAction, Cancel, Interrupt
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.facts import Ignored, LogLine, Note, SessionKnown
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.tolerant import text, whole
from agent_mux_adapters.opencode.client import Client
from agent_mux_adapters.opencode.conversation import Conversation
from agent_mux_adapters.opencode.events import Events
from agent_mux_adapters.opencode.names import Names
from agent_mux_adapters.opencode.requests import Requests
from agent_mux_adapters.opencode.wire import DELTA_MARK, MARK_AT, decode_delta, mapped_or_not, unknown


class ServeCodec:
    """Speaks with `opencode serve`, or reads what another client spoke with it, or its events alone."""

    def __init__(self, context: CodecContext) -> None:
        names = Names()
        self._client = Client()
        self._conversation = Conversation(context, self._client, names)
        self._requests = Requests(self._client, names, context.cwd)
        self._events = Events(context, names, self._requests, self._conversation)
        self._sources: dict[Source, Callable[[bytes], Iterable[Step]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._overhear,
        }

    def start(self) -> Iterable[Step]:
        """The bridge starts the server."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is STDOUT and line.startswith(DELTA_MARK, MARK_AT):
            try:
                fragment = decode_delta(line).properties
            except (ValueError, RecursionError):
                return self._receive(line)
            return self._events.delta(fragment)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        steps = dispatch_action(action, self._conversation, self._requests.reply)
        return self._stop(steps) if isinstance(action, Interrupt | Cancel) else steps

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """The server is gone."""
        return ()

    def _stop(self, steps: Iterable[Step]) -> Iterable[Step]:
        """First the abort: a refusal alone would let the agent go on."""
        return (*steps, *self._requests.withdraw()) if self._conversation.was_stopped else steps

    # -- a line of the bridge

    def _receive(self, line: bytes) -> tuple[Step, ...]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        if isinstance(message.get("type"), str):
            return mapped_or_not(self._events.told(message) or unknown(_kind_of(message), line))
        if "id" in message and "status" in message:
            return mapped_or_not(self._answered(message))
        return unknown("message", line)

    def _answered(self, message: Mapping[str, Any]) -> tuple[Step, ...]:
        asked = self._client.take(message["id"])
        if asked is None:
            return (Ignored("answer", "an answer whose request was not seen"),)
        steps = self._conversation.answered(
            asked, whole(message["status"]), message.get("body"), text(message.get("error"))
        )
        for step in steps:
            if isinstance(step, SessionKnown):
                self._events.open(step.session_id)
        return steps

    # -- a line of another client

    def _overhear(self, line: bytes) -> tuple[Step, ...]:
        message = load_object(line)
        if message is None or not text(message.get("path")):
            return (Note("a line to the bridge that is no request", "warn"),)
        asked = self._client.overhear(message)
        self._conversation.overheard(asked)
        return (Ignored(f"stdin:{asked.topic}", "our own side"),)


def _kind_of(message: Mapping[str, Any]) -> str:
    """Parts are told apart by their own type, too."""
    properties = message.get("properties")
    part = properties.get("part") if isinstance(properties, dict) else None
    inner = part.get("type") if isinstance(part, dict) else None
    return f"{message['type']}:{inner}" if isinstance(inner, str) else str(message["type"])
