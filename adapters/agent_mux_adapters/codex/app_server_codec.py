"""`codex app-server`: JSON-RPC both ways, one message per line and without a `jsonrpc` field."""

from collections.abc import Callable, Iterable
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.effects import WriteStdin
from agent_mux.facts import Fact, Ignored, LogLine, Note, SessionKnown, Unknown
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND, JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters.codex.conversation import Conversation
from agent_mux_adapters.codex.events import Events
from agent_mux_adapters.codex.requests import DECIDABLE, Requests
from agent_mux_adapters.codex.threads import Threads
from agent_mux_adapters.codex.wire import DELTA_STARTS, InThread, ThreadAnswer, decode_delta, read

_OPENING = frozenset({"thread/start", "thread/resume", "thread/fork"})
_NOT_OFFERED = {
    "account/chatgptAuthTokens/refresh": "the user's login is Codex's own",
    "applyPatchApproval": "the first version of the protocol",
    "attestation/generate": "not announced",
    "currentTime/read": "not announced",
    "execCommandApproval": "the first version of the protocol",
    "item/tool/call": "no tools are offered",
}
"""Requests that are known and refused, and why."""


class AppServerCodec:
    """Speaks with `codex app-server`, or reads what another client spoke with it."""

    def __init__(self, context: CodecContext) -> None:
        self._observing = context.prompt is None
        self._rpc = JsonRpcClient(with_version=False)
        self._conversation = Conversation(context, self._rpc)
        self._requests = Requests(self._rpc)
        self._threads = Threads(context.cwd)
        self._events = Events(context, self._threads, self._requests, self._conversation)
        self._sources: dict[Source, Callable[[bytes], Iterable[Step]]] = {
            Source.STDOUT: self._receive,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._overhear,
        }

    def start(self) -> Iterable[Step]:
        """The handshake begins."""
        return self._conversation.start()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is STDOUT and line.startswith(DELTA_STARTS):
            try:
                delta = decode_delta(line)
            except (ValueError, RecursionError):
                return self._receive(line)
            return self._events.delta(delta.method, delta.params)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something."""
        return dispatch_action(action, self._conversation, self._requests.reply)

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """The process is gone: what was kept back is told."""
        return tuple(fact for thread in self._threads.all() for fact in self._threads.tell(thread, thread.finish()))

    # -- a line of the app-server

    def _receive(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            if "id" in message:
                return _mapped_or_not(self._asked(method, message["id"], params, line))
            return _mapped_or_not(self._events.told(method, params) or _unknown(_kind_of(method, params), line))
        if "id" in message and ("result" in message or "error" in message):
            return _mapped_or_not(self._answered(message) or _unknown("response", line))
        return _unknown("message", line)

    def _asked(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[Step, ...]:
        where = read(InThread, params)
        main = self._threads.main
        thread_id = where.thread_id if where is not None else None
        if method in DECIDABLE and (thread_id or main is not None):
            thread = self._threads.get(thread_id) if thread_id else main
            facts = self._requests.ask(method, raw_id, params, thread) if thread is not None else None
            if facts is not None and thread is not None:
                return self._threads.tell(thread, facts)
        refusal = () if self._observing else (self._refusal(method, raw_id),)
        if method in _NOT_OFFERED:
            return Ignored(method, _NOT_OFFERED[method]), *refusal
        return *_unknown(method, line), *refusal

    def _refusal(self, method: str, raw_id: Any) -> WriteStdin:
        return WriteStdin(self._rpc.respond_error(raw_id, METHOD_NOT_FOUND, f"agent-mux does not offer {method}"))

    def _answered(self, message: dict[str, Any]) -> tuple[Step, ...] | None:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"codex refused a request: {error.message}", "warn"),)
            return self._conversation.refused(asked, error)
        result = message.get("result")
        if asked is None:
            return self._answer_to_nobody(result)
        if asked.method in _OPENING:
            return self._opened(asked, result)
        return self._conversation.answered(asked)

    def _answer_to_nobody(self, result: Any) -> tuple[Step, ...] | None:
        """In a transcript without our side, the answer that matters is known by its shape."""
        if not self._observing:
            return None
        if self._threads.main is None and read(ThreadAnswer, result) is not None:
            return self._opened(PendingRequest(""), result)
        return (Ignored("response", "an answer whose request was not seen"),)

    def _opened(self, asked: PendingRequest, result: Any) -> tuple[Step, ...]:
        answer = read(ThreadAnswer, result)
        if answer is None:
            return self._conversation.refused(asked, RpcError(0, "codex opened no thread"))
        thread, forked_from = answer.thread, answer.thread.forked_from_id
        self._threads.open(thread.id, answer.cwd)
        by_shape = not asked.method and forked_from is None and bool(thread.turns)
        known = SessionKnown(
            thread.id,
            resumed=asked.method == "thread/resume" or by_shape,
            forked_from=forked_from,
            prior_turns=len(thread.turns),
            model=answer.model or thread.model,
        )
        steps = self._conversation.opened(known)
        return *steps[:1], *self._events.documents(answer.instruction_sources), *steps[1:]

    # -- a line of another client

    def _overhear(self, line: bytes) -> Iterable[Step]:
        message = load_object(line)
        if message is None:
            return (Note("a line to codex that is no JSON object", "warn"),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                self._rpc.observe_request(message["id"], method, message.get("params"))
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._requests.overhear(message["id"], message.get("result"), message.get("error"))
        return _unknown("stdin", line)


def _kind_of(method: str, params: Any) -> str:
    """Items are told apart by their own type, too."""
    item = params.get("item") if isinstance(params, dict) else None
    inner = item.get("type") if isinstance(item, dict) else None
    return method if inner is None else f"{method}:{inner}"


def _unknown(kind: str, line: bytes) -> tuple[Step, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def _mapped_or_not(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """A line is ignored only when nothing else is said about it."""
    silent = [step for step in steps if isinstance(step, Ignored)]
    if not silent:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (silent[0], *rest)
