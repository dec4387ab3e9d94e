"""The policy of a run, applied: to what its agent asks, and to what it did without asking.

Who answers what an agent waits for: the policy, the approval mode, a callback, or nobody yet. Run API, section 2.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Literal

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
from agent_mux.run.interaction import InteractionChannel, describe, to_action
from agent_mux.run.readers import Listeners
from agent_mux.sdk.codec import AnyAction, ApproveAction, DenyAction
from agent_mux.sdk.facts import ApprovalAsked
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.sdk.options import RunOptions
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


class PolicyMonitor:
    """Watches what the agent does. What the policy denies should have been asked for, and was not.

    Agents ask for what they find worth asking. It cannot be undone, but it is told.
    """

    def __init__(self, policy: Policy, cwd: str) -> None:
        self._policy = policy
        self._cwd = cwd
        self._tool: str | None = None
        self._told: set[str] = set()

    def observe(self, events: Sequence[AgentEvent]) -> list[str]:
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


Decision = AnyAction | Literal["ask"] | None
"""An answer; that the callback has to be asked for one; or None: nobody is there to answer yet."""


class InteractionResponder:
    """Sees each new request once, and answers it if the options say how."""

    def __init__(self, run_id: str, options: RunOptions, channel: InteractionChannel, listeners: Listeners) -> None:
        self._run_id = run_id
        self._options = options
        self._channel = channel
        self._listeners = listeners
        self._seen: set[str] = set()

    def decide(self, pending: tuple[OpenInteraction, ...]) -> list[tuple[OpenInteraction, "Decision"]]:
        """The requests that are new, and what to do about each."""
        new = [request for request in pending if request.interaction_id not in self._seen]
        decided = []
        for request in new:
            self._seen.add(request.interaction_id)
            self._announce(request)
            decided.append((request, self._decide(request)))
        return decided

    def _announce(self, request: OpenInteraction) -> None:
        interaction = describe(request, self._run_id)
        for listener in self._channel.listeners():
            self._listeners.call_safely(listener, interaction)

    def _decide(self, request: OpenInteraction) -> "Decision":
        mode, policy = self._options.approval_mode, self._options.policy
        is_approval = request.kind == "approval"
        ruling = None if policy is None else ruled(policy, self._options.working_directory(), request)
        if ruling is not None:
            return ruling
        if is_approval and mode == "deny":
            return DenyAction(request.request_id, "denied: this run has approval mode deny")
        if self._responder(request) is not None:
            return "ask"
        if is_approval and mode == "yolo":
            return ApproveAction(request.request_id)
        return DenyAction(request.request_id, "nobody is there to answer") if mode != "prompt" else None

    def _responder(self, request: OpenInteraction) -> Callable[[PendingInteraction], Any] | None:
        options = self._options
        return options.on_approval_request if request.kind == "approval" else options.on_input_required

    def overdue(self, request: OpenInteraction) -> AnyAction:
        """What becomes of a request that nobody answered in time."""
        return overdue(self._options.policy, request, self._options.answer_within)

    async def ask_callback(self, request: OpenInteraction) -> AnyAction | None:
        """What the callback says. One that raises denies: the agent must not wait for ever."""
        responder = self._responder(request)
        if responder is None:
            return None
        try:
            response = responder(describe(request, self._run_id))
            if isawaitable(response):
                response = await response
            return None if response is None else to_action(request, response)
        except Exception as error:  # noqa: BLE001  # a callback of the consumer's may raise anything
            self._listeners.warn(f"the callback for {request.interaction_id} failed, so it is denied: {error!r}")
            return DenyAction(request.request_id, "the callback that should decide failed")
