"""What the program waits for, and our answers."""

from collections.abc import Iterable

from agent_mux.actions import Answer, Approve, Deny
from agent_mux.adapter import Step
from agent_mux.effects import Refuse
from agent_mux.facts import ApprovalAsked, InputAsked, RequestSettled
from agent_mux_adapters._dialects.agent_events.wire import control_line


class AgentEventsApprovals:
    """The open requests."""

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}
        """Request -> it is an approval."""

    def after(self, told: Iterable[Step]) -> None:
        """Keep up with what the program told."""
        for fact in told:
            match fact:
                case ApprovalAsked(request_id) | InputAsked(request_id):
                    self._open[request_id] = isinstance(fact, ApprovalAsked)
                case RequestSettled(request_id):
                    self._open.pop(request_id, None)

    def turn_over(self) -> None:
        """Nobody waits any more."""
        self._open.clear()

    def reply(self, action: Approve | Deny | Answer) -> tuple[Step, ...]:
        """A person decided."""
        key = action.request_id
        is_approval = self._open.get(key)
        if is_approval is None:
            return (Refuse("INTERACTION_NOT_FOUND", f"the program does not wait for {key} (any more)"),)
        match action:
            case Approve(always=always) if is_approval:
                said = control_line("approve", requestId=key, always=always or None), RequestSettled(key, granted=True)
            case Deny(reason=reason):
                settled = RequestSettled(key, granted=False, reason=reason)
                said = control_line("deny", requestId=key, reason=reason), settled
            case Answer(text=text) if not is_approval:
                said = control_line("answer", requestId=key, text=text), RequestSettled(key, granted=True)
            case _:
                what = "an approval: approve or deny it" if is_approval else "a question: answer it"
                return (Refuse("VALIDATION_ERROR", f"{key} is {what}"),)
        del self._open[key]
        return said
