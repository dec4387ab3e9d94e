"""`codex app-server`: JSON-RPC in both directions, one message per line and without a `jsonrpc` field."""

from collections.abc import Callable, Iterable
from typing import Any

from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source, WriteStdin
from agent_mux.sdk.facts import Fact, Ignored, LogLine, Note, SessionKnown, Unknown
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import dispatch_action
from agent_mux_adapters._dialects.jsonrpc import METHOD_NOT_FOUND, JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text, version_fact
from agent_mux_adapters.codex.app_server_reader import AppServerReader
from agent_mux_adapters.codex.approvals import APPROVAL_METHODS, CodexApprovals
from agent_mux_adapters.codex.held_message import HeldMessage
from agent_mux_adapters.codex.notices import KNOWN_NOTICES
from agent_mux_adapters.codex.threads import CodexThreads
from agent_mux_adapters.codex.turns import CodexTurns
from agent_mux_adapters.codex.wire import DELTA_STARTS, InThread, ThreadResult, decode_delta, read

_CONTINUING = frozenset({"thread/resume", "thread/fork"})
_OPENING = _CONTINUING | {"thread/start"}
_REFUSED = {
    "account/chatgptAuthTokens/refresh": "Codex manages the user's login",
    "applyPatchApproval": "the first version of the protocol",
    "attestation/generate": "not announced",
    "currentTime/read": "not announced",
    "execCommandApproval": "the first version of the protocol",
    "item/tool/call": "no tools are offered",
}
"""Known requests that are refused, and why."""
_DISTINCTIVE_METHODS = (
    KNOWN_NOTICES
    | {"account/rateLimits/updated"}
    | APPROVAL_METHODS
    | {"item/completed", "item/started", "thread/started", "turn/completed", "turn/started"}
)


class CodexAppServerCodec:
    """Codec of `codex app-server`, for our own runs and for transcripts of other clients."""

    def __init__(self, context: CodecContext) -> None:
        self._is_observed = context.prompt is None
        """Whether another client runs the app-server and we only read its transcript."""
        self._rpc = JsonRpcClient(with_version=False)
        self._turns = CodexTurns(context, self._rpc)
        self._approvals = CodexApprovals(self._rpc)
        self._threads = CodexThreads(context.cwd)
        self._held = HeldMessage()
        self._reader = AppServerReader(context, self._threads, self._approvals, self._turns)
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDOUT: lambda line: self._held.pass_on(self._receive(line)),
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._receive_stdin,
        }

    def start(self) -> Iterable[CodecOutput]:
        """Begin the handshake with the app-server."""
        return self._turns.start()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps for one line."""
        if source is STDOUT and line.startswith(DELTA_STARTS):
            try:
                delta = decode_delta(line)
            except (ValueError, RecursionError):
                return self._sources[source](line)
            facts = self._reader.delta(delta.method, delta.params)
            return facts if self._held.is_empty else self._held.pass_on(facts)
        return self._sources[source](line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the steps that perform an action of the consumer."""
        return dispatch_action(action, self._turns, self._approvals.reply)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return the facts that were kept back, when the process has exited."""
        kept = (fact for thread in self._threads.all() for fact in self._threads.place(thread, thread.finish()))
        return *self._held.release(), *kept

    # -- a line of the app-server

    def _receive(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (LogLine(line.decode("utf-8", "replace")),)
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            if "id" in message:
                return _without_redundant_ignored(self._requested(method, message["id"], params, line))
            steps = self._reader.notification(method, params)
            return _without_redundant_ignored(steps or _unknown(_kind_of(method, params), line))
        if "id" in message and ("result" in message or "error" in message):
            return _without_redundant_ignored(self._responded(message) or _unknown("response", line))
        return _unknown("message", line)

    def _requested(self, method: str, raw_id: Any, params: Any, line: bytes) -> tuple[CodecOutput, ...]:
        where = read(InThread, params)
        main = self._threads.main
        thread_id = where.thread_id if where is not None else None
        if method in APPROVAL_METHODS and (thread_id or main is not None):
            thread = self._threads.get(thread_id) if thread_id else main
            facts = self._approvals.open(method, raw_id, params, thread) if thread is not None else None
            if facts is not None and thread is not None:
                return self._threads.place(thread, facts)
        refusal = () if self._is_observed else (self._refusal(method, raw_id),)
        if method in _REFUSED:
            return Ignored(method, _REFUSED[method]), *refusal
        return *_unknown(method, line), *refusal

    def _refusal(self, method: str, raw_id: Any) -> WriteStdin:
        return WriteStdin(self._rpc.respond_error(raw_id, METHOD_NOT_FOUND, f"agent-mux does not offer {method}"))

    def _responded(self, message: dict[str, Any]) -> tuple[CodecOutput, ...] | None:
        asked = self._rpc.take_request(message["id"])
        if message.get("error") is not None:
            error = RpcError.read(message["error"])
            if asked is None:
                return (Note(f"codex refused a request: {error.message}", "warn"),)
            return self._turns.refused(asked, error)
        result = message.get("result")
        if asked is None:
            return self._response_without_request(result)
        if asked.method in _OPENING:
            return self._thread_opened(asked, result)
        # The user agent is `client/version (system) ...`.
        version = version_fact(text(mapping(result).get("userAgent")).partition("/")[2])
        return *version, *self._turns.answered(asked)

    def _response_without_request(self, result: Any) -> tuple[CodecOutput, ...] | None:
        """Handle a response in a transcript without stdin: an opened thread is recognized by its shape."""
        if not self._is_observed:
            return None
        if self._threads.main is None and read(ThreadResult, result) is not None:
            return self._thread_opened(PendingRequest(""), result)
        if version := version_fact(text(mapping(result).get("userAgent")).partition("/")[2]):
            return version
        return (Ignored("response", "a response without a known request"),)

    def _thread_opened(self, asked: PendingRequest, result: Any) -> tuple[CodecOutput, ...]:
        answer = read(ThreadResult, result)
        if answer is None:
            return self._turns.refused(asked, RpcError(0, "codex opened no thread"))
        thread, forked_from = answer.thread, answer.thread.forked_from_id
        is_resumed_by_shape = not asked.method and forked_from is None and bool(thread.turns)
        has_history = bool(thread.turns) or asked.method in _CONTINUING
        self._threads.open(thread.id, answer.cwd, has_history=has_history)
        known = SessionKnown(
            thread.id,
            resumed=asked.method == "thread/resume" or is_resumed_by_shape,
            forked_from=forked_from,
            prior_turns=len(thread.turns),
            model=answer.model or thread.model,
        )
        steps = self._turns.opened(known)
        return *steps[:1], *self._reader.documents(answer.instruction_sources), *steps[1:]

    # -- a line of another client

    def _receive_stdin(self, line: bytes) -> Iterable[CodecOutput]:
        message = load_object(line)
        if message is None:
            return (Note("a line to codex is not a JSON object", "warn"),)
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                self._rpc.observe_request(message["id"], method, message.get("params"))
            return (Ignored(f"stdin:{method}", "our own side"),)
        if "id" in message:
            return self._approvals.observe_reply(message["id"], message.get("result"), message.get("error"))
        return _unknown("stdin", line)


def _kind_of(method: str, params: Any) -> str:
    """Return the method, with the type of the item if the notification has one."""
    item = params.get("item") if isinstance(params, dict) else None
    inner = item.get("type") if isinstance(item, dict) else None
    return method if inner is None else f"{method}:{inner}"


def _unknown(kind: str, line: bytes) -> tuple[CodecOutput, ...]:
    return (Unknown(kind, line.decode("utf-8", "replace")),)


def _without_redundant_ignored(steps: tuple[CodecOutput, ...]) -> tuple[CodecOutput, ...]:
    """Drop `Ignored` beside other facts, and all but the first one without other facts."""
    ignored = [step for step in steps if isinstance(step, Ignored)]
    if not ignored:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, Ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (ignored[0], *rest)


def is_app_server_line(value: Any) -> bool:
    """Return whether only `codex app-server` prints this line: one of its methods, or the result of `initialize`."""
    line = mapping(value)
    method, result = line.get("method"), line.get("result")
    if isinstance(method, str):
        return "jsonrpc" not in line and method in _DISTINCTIVE_METHODS and "params" in line
    return isinstance(result, dict) and "codexHome" in result and "userAgent" in result
