"""What a run can be told, as the service takes it: the path below the run, and the body."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.codec import AnswerAction, AnyAction, ApproveAction, DenyAction, Send, Steer


def request_for(action: AnyAction) -> tuple[str, Mapping[str, Any]]:
    """Path and body. Raises `TypeError` for an action that no handle has."""
    match action:
        case Send(text, own_turn):
            return ("queue" if own_turn else "input"), {"text": text}
        case Steer(text):
            return "steer", {"text": text}
        case ApproveAction(request_id, always):
            return "approve", {"interactionId": request_id, "always": always}
        case DenyAction(request_id, reason):
            return "deny", {"interactionId": request_id, "reason": reason}
        case AnswerAction(request_id, text):
            return "respond", {"interactionId": request_id, "text": text}
    raise TypeError(f"no such action of a consumer: {action!r}")
