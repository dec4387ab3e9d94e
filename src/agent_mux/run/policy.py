"""The policy of a run: its answers to approvals, and a comparison with what the agent did without asking.

See docs/spec/run-api.md, section 2.
"""

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
from agent_mux.sdk.facts import ApprovalRequested
from agent_mux.sdk.policy import Policy, PolicyDecision, PolicyRequest
from agent_mux.sdk.shell_commands import risk_of_command

BY_POLICY = "denied by the policy of this run"
MAX_WARNINGS = 100
"""Limit of warnings per run about actions without approval."""


def apply_policy(policy: Policy, cwd: str, request: OpenInteraction) -> AnyAction | None:
    """Return the policy's answer to an approval; None if the policy leaves it open. Questions are always left open."""
    asked = request.asked
    if not isinstance(asked, ApprovalRequested):
        return None
    subject = PolicyRequest(tool=asked.tool_name, command=asked.command, paths=asked.paths, risk=asked.risk, cwd=cwd)
    ruling = _evaluate(policy.rule_on, subject)
    if ruling is None or ruling.decision == "ask":
        return None
    if ruling.decision == "allow":
        return ApproveAction(request.request_id)
    return DenyAction(request.request_id, ruling.reason or BY_POLICY)


def answer_overdue(policy: Policy | None, request: OpenInteraction, seconds: float) -> AnyAction:
    """Return the answer to a request that was not answered in time."""
    if policy is not None and policy.on_timeout == "allow" and request.kind == "approval":
        return ApproveAction(request.request_id)
    return DenyAction(request.request_id, f"no answer within {seconds:g} s")


def _evaluate(rule: Callable[[PolicyRequest], PolicyDecision | None], request: PolicyRequest) -> PolicyDecision | None:
    try:
        return rule(request)
    except (ValueError, OSError) as error:  # an impossible path, for example with a NUL character
        return PolicyDecision("deny", f"{BY_POLICY}: the policy cannot be applied ({error})")


class PolicyMonitor:
    """Reports actions that the policy denies and for which the agent did not ask.

    Agents decide themselves what they ask for. Such an action cannot be undone, so it becomes a warning.
    """

    def __init__(self, policy: Policy, cwd: str) -> None:
        self._policy = policy
        self._cwd = cwd
        self._tool: str | None = None
        self._reported: set[str] = set()

    def observe(self, events: Sequence[AgentEvent]) -> list[str]:
        """Return warnings about these events; each text is returned once."""
        warnings = [warning for event in events if (warning := self._check(event)) is not None]
        new = [warning for warning in dict.fromkeys(warnings) if warning not in self._reported]
        new = new[: MAX_WARNINGS - len(self._reported)]
        self._reported.update(new)
        return new

    def _check(self, event: AgentEvent) -> str | None:
        if isinstance(event, ToolCallReadyEvent | ToolResultEvent):
            self._tool = event.tool_name
        describe_event = _DESCRIPTIONS.get(type(event))
        if describe_event is None:
            return None
        description, fields = describe_event(event)
        subject = PolicyRequest(tool=self._tool, cwd=self._cwd, **fields)
        # A tool result has only the tool's name, so only rules about tools apply; other events show what the tool did.
        ruling = _evaluate(self._policy.rule_on if fields else self._policy.ruled, subject)
        if ruling is None or ruling.decision != "deny":
            return None
        reason = f": {ruling.reason}" if ruling.reason else ""
        return f"{description} without asking, though the policy denies it{reason}"


_Described = tuple[str, Mapping[str, Any]]


def _changed(event: Any) -> _Described:
    return f"the agent changed {event.path}", {"paths": (event.path,), "risk": "medium"}


_DESCRIPTIONS: Mapping[type, Callable[[Any], _Described]] = {
    ToolResultEvent: lambda event: (f"the agent used {event.tool_name}", {}),
    ShellStartEvent: lambda event: (
        f"the agent ran `{event.command}`",
        {"command": event.command, "risk": risk_of_command(event.command)},
    ),
    FileReadEvent: lambda event: (f"the agent read {event.path}", {"paths": (event.path,), "risk": "low"}),
    **dict.fromkeys((FileCreateEvent, FileWriteEvent, FileDeleteEvent, FilePatchEvent), _changed),
}
