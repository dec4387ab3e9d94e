"""Approvals and questions of the program, and our answers to them."""

from collections.abc import Iterable

from agent_mux.sdk.codec import AnswerAction, ApproveAction, CodecOutput, DenyAction, Refuse
from agent_mux.sdk.facts import ApprovalRequested, InputRequested, RequestResolved
from agent_mux_adapters._dialects.agent_events.wire import control_line


class AgentEventsApprovals:
    """The open requests of the program."""

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}
        """The open requests by id, and whether each is an approval."""

    def track(self, facts: Iterable[CodecOutput]) -> None:
        """Track the requests that these facts open and settle."""
        for fact in facts:
            match fact:
                case ApprovalRequested(request_id) | InputRequested(request_id):
                    self._open[request_id] = isinstance(fact, ApprovalRequested)
                case RequestResolved(request_id):
                    self._open.pop(request_id, None)

    def turn_over(self) -> None:
        """Forget the open requests, since nothing waits for them after the turn."""
        self._open.clear()

    def reply(self, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        """Send a decision or an answer, or refuse it when no request waits for it."""
        key = action.request_id
        is_approval = self._open.get(key)
        if is_approval is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"the program has no open request {key}"),)
        match action:
            case ApproveAction(always=always) if is_approval:
                steps = (
                    control_line("approve", requestId=key, always=always or None),
                    RequestResolved(key, granted=True),
                )
            case DenyAction(reason=reason):
                settled = RequestResolved(key, granted=False, reason=reason)
                steps = control_line("deny", requestId=key, reason=reason), settled
            case AnswerAction(text=text) if not is_approval:
                steps = control_line("answer", requestId=key, text=text), RequestResolved(key, granted=True)
            case _:
                what = "an approval: approve or deny it" if is_approval else "a question: answer it"
                return (Refuse("VALIDATION_ERROR", f"{key} is {what}"),)
        del self._open[key]
        return steps
