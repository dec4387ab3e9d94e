"""The policy of a run, applied: to what its agent asks, and to what it did without asking."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_mux.assembler import OpenInteraction
from agent_mux.events import (
    AgentEvent,
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileReadEvent,
    FileWriteEvent,
    ShellStartEvent,
    ToolCallReadyEvent,
    ToolResultEvent,
)
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction
from agent_mux.sdk.facts import ApprovalAsked
from agent_mux.sdk.policy import Policy, Request, Ruling
from agent_mux.sdk.shell_commands import risk_of_command

BY_POLICY = "denied by the policy of this run"
MOST_TOLD = 100
"""Warnings about what was done unasked: after that one can know."""


def ruled(policy: Policy, cwd: str, open_: OpenInteraction) -> AnyAction | None:
    """What the policy answers a request; None when it leaves it open. Questions are none of its business."""
    asked = open_.asked
    if not isinstance(asked, ApprovalAsked):
        return None
    request = Request(tool=asked.tool_name, command=asked.command, paths=asked.paths, risk=asked.risk, cwd=cwd)
    ruling = _rule(policy.rule_on, request)
    if ruling is None or ruling.decision == "ask":
        return None
    if ruling.decision == "allow":
        return ApproveAction(open_.request_id)
    return DenyAction(open_.request_id, ruling.reason or BY_POLICY)


def overdue(policy: Policy | None, open_: OpenInteraction, seconds: float) -> AnyAction:
    """What becomes of a request that nobody answered in time."""
    if policy is not None and policy.on_timeout == "allow" and open_.kind == "approval":
        return ApproveAction(open_.request_id)
    return DenyAction(open_.request_id, f"nobody answered within {seconds:g} s")


def _rule(rule: Callable[[Request], Ruling | None], request: Request) -> Ruling | None:
    try:
        return rule(request)
    except (ValueError, OSError) as error:  # a path that is none: with a NUL character, say
        return Ruling("deny", f"{BY_POLICY}: it cannot be judged ({error})")


class Unasked:
    """Watches what the agent does. What the policy denies should have been asked for, and was not.

    Agents ask for what they find worth asking. It cannot be undone, but it is told.
    """

    def __init__(self, policy: Policy, cwd: str) -> None:
        self._policy = policy
        self._cwd = cwd
        self._tool: str | None = None
        self._told: set[str] = set()

    def see(self, events: Sequence[AgentEvent]) -> list[str]:
        """Warnings about these events, each said once."""
        warnings = [warning for event in events if (warning := self._judge(event)) is not None]
        fresh = [warning for warning in dict.fromkeys(warnings) if warning not in self._told]
        fresh = fresh[: MOST_TOLD - len(self._told)]
        self._told.update(fresh)
        return fresh

    def _judge(self, event: AgentEvent) -> str | None:
        if isinstance(event, ToolCallReadyEvent | ToolResultEvent):
            self._tool = event.tool_name
        look = _DONE.get(type(event))
        if look is None:
            return None
        what, fields = look(event)
        request = Request(tool=self._tool, cwd=self._cwd, **fields)
        # What a tool was used for is told by other events: of its name alone, only a rule about it can tell.
        ruling = _rule(self._policy.rule_on if fields else self._policy.ruled, request)
        if ruling is None or ruling.decision != "deny":
            return None
        return f"{what} without asking, though the policy denies it{f': {ruling.reason}' if ruling.reason else ''}"


_Done = tuple[str, Mapping[str, Any]]


def _changed(event: Any) -> _Done:
    return f"the agent changed {event.path}", {"paths": (event.path,), "risk": "medium"}


_DONE: Mapping[type, Callable[[Any], _Done]] = {
    ToolResultEvent: lambda event: (f"the agent used {event.tool_name}", {}),
    ShellStartEvent: lambda event: (
        f"the agent ran `{event.command}`",
        {"command": event.command, "risk": risk_of_command(event.command)},
    ),
    FileReadEvent: lambda event: (f"the agent read {event.path}", {"paths": (event.path,), "risk": "low"}),
    **dict.fromkeys((FileCreateEvent, FileWriteEvent, FileDeleteEvent, FilePatchEvent), _changed),
}
