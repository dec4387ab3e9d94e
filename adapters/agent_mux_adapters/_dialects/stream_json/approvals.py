"""Permissions and questions that the agent requests over the control protocol, and our responses.

Both are `can_use_tool` requests: an ordinary tool asks for permission; the question tool passes its questions as input.
A request becomes one `ApprovalRequested`, or one `InputRequested` per question, and is answered once.

The agent withdraws a request without the decision, for example when a hook of the user made it. The result of the tool
call states it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse
from agent_mux_adapters._dialects.choices import read_choices
from agent_mux_adapters._dialects.stream_json import wire
from agent_mux_adapters._dialects.stream_json.tools import ToolResultBlock, ToolTable, read_result
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, need_mapping, need_text, rows, text

DENIED = "The user denied this."
WITHDRAWN = "withdrawn by the agent"
_RAN = ("Exit code ", "<tool_use_error>")
"""How the result of a call begins that failed although it was allowed."""
_INTERRUPTED = "The user doesn't want to proceed"
Steps = tuple[CodecOutput, ...]


class PendingPermission:
    """A request of the agent without a response."""

    def __init__(self, request_id: str, tool: str, request: Mapping[str, Any], *, is_question: bool) -> None:
        self.request_id = request_id
        self.tool = tool
        self.input = request.get("input")
        self.suggestions = rows(request.get("permission_suggestions"))
        questions = rows(mapping(self.input).get("questions")) if is_question else []
        self.questions = {self._key(index, len(questions)): row for index, row in enumerate(questions)}
        self.answers: dict[str, str] = {}
        self.call_id: str | None = None
        """Id of the tool call that waits, if it is known."""
        self.open = set(self.questions) or {request_id}
        """Ids of the interactions that are not settled."""

    def _key(self, index: int, count: int) -> str:
        return self.request_id if count == 1 else f"{self.request_id}#{index}"


RememberApproval = Callable[[PendingPermission], Sequence[Any]]
"""Returns the `updatedPermissions` that make the agent remember an approval."""


FindCall = Callable[[str, Any], str | None]
"""Returns the id of the open call with this tool and input."""


def _forget(_: PendingPermission) -> Sequence[Any]:
    return ()


def _find_none(_tool: str, _input: Any) -> str | None:
    return None


class StreamJsonApprovals:
    """The open requests of the agent."""

    def __init__(
        self, tools: ToolTable, *, live: bool, remember: RememberApproval = _forget, find_call: FindCall = _find_none
    ) -> None:
        """Start without requests. `find_call` identifies the call of a request that does not name it."""
        self._tools = tools
        self._find_call = find_call
        self._remember = remember
        self._live = live
        """Whether we can respond; False when the transcript of another client is observed."""
        self._asks: dict[str, PendingPermission] = {}
        self._by_key: dict[str, PendingPermission] = {}
        self._early_responses: dict[str, Mapping[str, Any]] = {}
        """Responses read before their request, since the two sides of a transcript are recorded separately."""
        self._withdrawn: dict[str, PendingPermission] = {}
        """Withdrawn requests, whose decision is not known yet, by the id of the tool call."""

    # -- requests of the agent

    def read_request(self, line: Mapping[str, Any]) -> Steps:
        """Read a `control_request` line: a permission, a question, or an unsupported request."""
        request_id, request = need_text(line, "request_id"), need_mapping(line, "request")
        match request.get("subtype"):
            case "can_use_tool":
                return self._may_use(request_id, request)
            case "hook_callback":
                emitted = facts.Ignored("control_request/hook_callback", "no hook of agent-mux decides")
                return (emitted, *self._reply(wire.control_response(request_id, {})))
            case other:
                message = f"{text(other) or 'this request'} is not supported"
                return (facts.Note(f"the agent sent an unknown control request: {message}", "warn"),
                        *self._reply(wire.control_error(request_id, message)))  # fmt: skip

    def read_cancellation(self, line: Mapping[str, Any]) -> Steps:
        """Read a `control_cancel_request` line, with which the agent withdraws a request."""
        ask = self._asks.get(need_text(line, "request_id"))
        if ask is None:
            return (facts.Ignored("control_cancel_request", "nothing was open"),)
        if ask.questions or not ask.call_id:
            return self._settle(ask, granted=False, reason=WITHDRAWN)
        self._forget(ask)
        self._withdrawn[ask.call_id] = ask
        return (facts.Ignored("control_cancel_request", "the result of the call states the decision"),)

    def decisions_in(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Return the decisions on withdrawn requests that a line shows, before the facts of the line itself."""
        if not self._withdrawn:
            return ()
        match line.get("type"):
            case "user":
                blocks = rows(mapping(line.get("message")).get("content"))
                results = [read_result(block, None) for block in blocks if block.get("type") == "tool_result"]
                return tuple(fact for result in results for fact in self._decide(result.call_id, result))
            case "tool_progress":
                return self._decide(text(line.get("tool_use_id")), None)
            case "result":
                return self.close()
        return ()

    def close(self) -> tuple[facts.Fact, ...]:
        """Return that withdrawn requests were not granted, at the end of a turn or of the process."""
        left, self._withdrawn = self._withdrawn, {}
        return tuple(facts.RequestResolved(ask.request_id, granted=False, reason=WITHDRAWN) for ask in left.values())

    def _decide(self, call_id: str, result: ToolResultBlock | None) -> tuple[facts.Fact, ...]:
        """Return the decision on a call. `result`: None while the call runs."""
        ask = self._withdrawn.pop(call_id, None)
        if ask is None:
            return ()
        if result is None or not result.failed or result.native_text.startswith(_RAN):
            return (facts.RequestResolved(ask.request_id, granted=True),)
        reason = WITHDRAWN if result.error.startswith(_INTERRUPTED) else result.error
        return (facts.RequestResolved(ask.request_id, granted=False, reason=reason),)

    def read_response(self, line: Mapping[str, Any]) -> Steps:
        """Read a `control_response` line: the agent's response to us, or a response of ours that it printed again."""
        response = need_mapping(line, "response")
        request_id = text(response.get("request_id"))
        ask = self._asks.get(request_id)
        if ask is not None:
            return self._settle_as(ask, response)
        if response.get("subtype") == "error":
            return (facts.Note(f"the agent refused a control request: {text(response.get('error'))}", "warn"),)
        return (facts.Ignored(kind_of(line), "a response to a settled request or to one of ours"),)

    def read_client_response(self, line: Mapping[str, Any]) -> Steps:
        """Read a `control_response` line from the stdin of a transcript."""
        response = need_mapping(line, "response")
        request_id = need_text(response, "request_id")
        if request_id in self._asks:
            return self.read_response(line)
        self._early_responses[request_id] = response
        return (facts.Ignored(kind_of(line), "its request follows"),)

    # -- our responses

    def act(self, action: ApproveAction | DenyAction | AnswerAction) -> Steps:
        """Send a decision or an answer of the consumer, or refuse it when no request waits for it."""
        ask = self._by_key.get(action.request_id)
        if ask is None or not self._live:
            return (Refuse("INTERACTION_NOT_FOUND", f"no open request {action.request_id}"),)
        match action:
            case DenyAction(reason=reason):
                message = reason or DENIED
                return (
                    wire.control_response(ask.request_id, wire.deny_result(message)),
                    *self._settle(ask, granted=False, reason=reason),
                )
            case AnswerAction(request_id=key, text=answer_text) if ask.questions:
                return self._answer(ask, key, answer_text)
            case ApproveAction(always=always) if not ask.questions:
                permissions = self._remember(ask) if always else ()
                return (wire.control_response(ask.request_id, wire.allow_result(ask.input, permissions)),
                        *self._settle(ask, granted=True))  # fmt: skip
        wants = "an answer" if ask.questions else "a yes or no"
        return (Refuse("INTERACTION_NOT_FOUND", f"{action.request_id} waits for {wants}"),)

    # -- inside

    def _reply(self, effect: CodecOutput) -> Steps:
        return (effect,) if self._live else ()

    def _may_use(self, request_id: str, request: Mapping[str, Any]) -> Steps:
        tool = need_text(request, "tool_name")
        ask = PendingPermission(request_id, tool, request, is_question=tool == self._tools.question)
        self._asks[request_id] = ask
        self._by_key.update(dict.fromkeys(ask.open, ask))
        emitted: Steps = tuple(_question(key, row) for key, row in ask.questions.items())
        if not emitted:
            ask.call_id = text(request.get("tool_use_id")) or self._find_call(tool, ask.input)
            emitted = (self._approval(ask, ask.call_id),)
        early = self._early_responses.pop(request_id, None)
        return emitted if early is None else (*emitted, *self._settle_as(ask, early))

    def _approval(self, ask: PendingPermission, call_id: str | None) -> facts.Fact:
        tool, arguments = ask.tool, mapping(ask.input)
        action, detail = self._tools.action_of(tool), self._tools.detail_of(tool, arguments)
        risk, command = self._tools.risk_of(tool, arguments), self._tools.command_of(tool, arguments)
        paths, edits = self._tools.paths_of(arguments), self._tools.edits_of(tool, arguments)
        return facts.ApprovalRequested(
            ask.request_id, action, detail, risk, tool, call_id, command, paths, ask.input, edits=edits
        )

    def _answer(self, ask: PendingPermission, key: str, answer_text: str) -> Steps:
        if key not in ask.open:
            return (Refuse("INTERACTION_NOT_FOUND", f"{key} was answered already"),)
        ask.open.discard(key)
        number = list(ask.questions).index(key)
        ask.answers[self._tools.answer_key(number, ask.questions[key])] = answer_text
        settled = facts.RequestResolved(key, granted=True)
        if ask.open:
            return (settled,)
        self._forget(ask)
        arguments = {**mapping(ask.input), "answers": ask.answers}
        return (wire.control_response(ask.request_id, wire.allow_result(arguments)), settled)

    def _settle_as(self, ask: PendingPermission, response: Mapping[str, Any]) -> Steps:
        decision = mapping(response.get("response"))
        reason = text(response.get("error")) or text(decision.get("message"))
        return self._settle(ask, granted=decision.get("behavior") == "allow", reason=reason or None)

    def _settle(self, ask: PendingPermission, *, granted: bool, reason: str | None = None) -> Steps:
        keys = sorted(ask.open)
        self._forget(ask)
        return tuple(facts.RequestResolved(key, granted=granted, reason=reason) for key in keys)

    def _forget(self, ask: PendingPermission) -> None:
        self._asks.pop(ask.request_id, None)
        for key in ask.questions or (ask.request_id,):
            self._by_key.pop(key, None)


def _question(key: str, row: Mapping[str, Any]) -> facts.Fact:
    context, labels = read_choices(row)
    return facts.InputRequested(key, text(row.get("question")), context, labels, "tool")
