"""Approvals and questions: the hook `tool:gate` of this program, and the requests that wait for an answer.

The approval mode decides about tool calls that do more than read. "yolo" allows them, "prompt" requests an approval,
and "deny" and "plan" block them at once, with a reason for the model.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from msgspec.structs import replace

from agent_loop.cli.stream import ApprovalMode, EventStream
from agent_loop.errors import ToolError
from agent_loop.hooks import Hooks
from agent_loop.hooks.contexts import ToolGate
from agent_loop.presets.plan_mode import ONLY_PLANS
from agent_loop.tools.builtin.plan import PRESENT_PLAN, PlanDecision
from agent_loop.tools.threads import call_in_thread
from agent_loop.tools.tool import (
    CallPreview,
    ToolContext,
    ToolKind,
    foreground_command_of,
    kind_of,
    label_of,
    leaves_sandbox,
    mcp_origin_of,
    needs_no_approval,
    preview_of_call,
    risk_of,
    shell_command_of,
)
from agent_loop.workspace import Workspace
from agent_mux._util.sanitize import to_json
from agent_mux.assembler import OpenInteraction
from agent_mux.run.edit_preview import diff_of_edits, read_files
from agent_mux.sdk import facts
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.shell_commands import risk_of_command

DENIED = "this run allows only tools that read; continue without this call"
ANSWERS_WITH_PLAN = "this run only plans and changes nothing; finish with the plan as the answer"
REFUSED = "the user denied this call"
NO_APPROVER = "no user is available to approve this call; continue without it"
NO_ANSWER = "no user is available to answer"
NO_PLAN_REVIEWER = "no user is available to accept the plan; answer with the plan"
PLAN_ACTION = f"carry out a plan ({PRESENT_PLAN})"
STAYS_IN_SANDBOX = "a command leaves the sandbox only with an approval, which this run cannot ask for"
STOPPED = "the turn was stopped"
_ACTIONS: Mapping[ToolKind, str] = {
    "read": "read",
    "edit": "change files",
    "execute": "run a command",
    "fetch": "access the network",
    "ask": "ask a question",
    "other": "use a tool",
}
_DENIALS: Mapping[ApprovalMode, str] = {"deny": DENIED, "plan": ANSWERS_WITH_PLAN}
"""The modes that ask nobody, and the reasons of their denials."""
_PATH_ARGUMENTS = ("path", "file_path", "paths")
_DETAIL_ARGUMENTS = ("url", "path", "file_path")
"""The arguments that describe a call if they are its only one."""


@dataclass(frozen=True, slots=True)
class InteractionDecision:
    """The answer to an approval request or a question."""

    granted: bool
    text: str = ""
    """The reason of a denial, or the answer to a question."""
    always: bool = False
    """Whether similar calls are approved, too."""


@dataclass(slots=True)
class _PendingDecision:
    decided: anyio.Event = field(default_factory=anyio.Event)
    decision: InteractionDecision = InteractionDecision(False, STOPPED)  # frozen


ApprovalKey = tuple[str, str, bool]
"""Tool, command line, and whether it runs without the sandbox."""
Asker = Callable[[OpenInteraction], Awaitable[InteractionDecision]]
"""A function that asks a user at a terminal and returns the decision."""


class Approvals:
    """The approvals and questions of one conversation."""

    def __init__(  # noqa: PLR0913  # keyword arguments, each documented below
        self,
        stream: EventStream,
        mode: ApprovalMode,
        *,
        directory: str = "",
        workspace: Workspace | None = None,
        asks_everything: bool = False,
        accepts_edits: bool = False,
        allowed_tools: Collection[str] = (),
        asker: Asker | None = None,
        mode_after_plan: ApprovalMode | None = None,
    ) -> None:
        """Create the approvals of a conversation.

        Args:
            stream: Emits the requests.
            mode: Decides which calls need an approval.
            directory: The directory with the files whose diffs are shown.
            workspace: The files that tools change, for calls whose preview needs them.
            asks_everything: Request an approval for tools that only read, too.
            accepts_edits: Let changes of files pass in mode "prompt", unless everything is asked.
            allowed_tools: Names of the tools that need no approval, unless everything is asked.
            asker: Asks a user at a terminal.
            mode_after_plan: The mode after the user has accepted a plan, for an agent that presents plans.
        """
        self._mode_after_plan = mode_after_plan
        self._stream = stream
        self._directory = directory
        self._workspace = workspace
        self._mode = mode
        self._asks_everything = asks_everything
        self._accepts_edits = accepts_edits
        self._allowed_tools = frozenset(allowed_tools)
        self._asker = asker
        self._asker_lock = anyio.Lock()
        self._pending: dict[str, _PendingDecision] = {}
        self._approved_keys: set[ApprovalKey] = set()
        self._request_count = 0
        self._has_no_user = False

    def install(self, hooks: Hooks) -> None:
        """Register the gate, which runs before each tool call."""
        hooks.on("tool:gate", self.gate)

    @property
    def _presents_plans(self) -> bool:
        return self._mode == "plan" and self._mode_after_plan is not None

    def set_mode(self, mode: ApprovalMode) -> None:
        """Decide about the following calls in another mode. Pending requests stay pending."""
        self._mode = mode
        self._stream.show_requests()

    # -- for the run

    async def gate(self, context: ToolGate) -> None:
        """Block a tool call, or let it pass. Waits for an approval in mode "prompt"."""
        if context.block or context.result is not None or self._is_allowed(context):
            return
        if self._mode == "yolo":  # it asks for nothing, and allows everything else
            context.block, context.reason = True, STAYS_IN_SANDBOX
            return
        preview = None
        if hasattr(context.tool, "preview"):
            preview = await call_in_thread(preview_of_call, context.tool, context.arguments, self._workspace)
        request = self._announce(context, preview)
        if self._mode in _DENIALS:
            reason = ONLY_PLANS if self._presents_plans else _DENIALS[self._mode]
            self._stream.emit(request, facts.RequestResolved(request.request_id, granted=False, reason=reason))
            context.block, context.reason = True, reason
            return
        decision = await self._wait(request, NO_APPROVER)
        if not decision.granted:
            context.block, context.reason = True, decision.text or REFUSED
        elif decision.always:
            self._approved_keys.add(approval_key(context))

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """Ask the user a question and return the answer. Raises `ToolError` if there is no answer."""
        request = facts.InputRequested(self._next_id(), question, None, options, "tool")
        decision = await self._wait(request, NO_ANSWER)
        if not decision.granted:
            raise ToolError(f"the question was not answered: {decision.text or NO_ANSWER}")
        return decision.text

    async def review_plan(self, plan: str, context: ToolContext) -> PlanDecision:
        """Request an approval of a plan. An accepted plan ends mode "plan"; "always" accepts edits as well.

        Raises `ToolError` if no user is available.
        """
        mode = self._mode_after_plan or "prompt"
        if self._mode != "plan":
            return PlanDecision(accepted=True)  # the user has left plan mode already
        if mode != "yolo":
            self._stream.show_requests()
            call_id = self._stream.call_id_of(context.call_id)
            request = facts.ApprovalRequested(
                self._next_id(), PLAN_ACTION, plan, "medium", context.tool_name, call_id, tool_input={"plan": plan}
            )
            decision = await self._wait(request, NO_PLAN_REVIEWER)
            if decision.text == NO_PLAN_REVIEWER:
                raise ToolError(NO_PLAN_REVIEWER)
            if not decision.granted:
                return PlanDecision(accepted=False, reason="" if decision.text == REFUSED else decision.text)
            self._accepts_edits = self._accepts_edits or decision.always
        if self._mode == "plan":  # otherwise the user has chosen another mode meanwhile
            self.set_mode(mode)
        return PlanDecision(accepted=True)

    # -- for the controlling side

    def answer(self, interaction_id: str, decision: InteractionDecision, kind: str | None = None) -> bool:
        """Answer a pending request. Return False if no request of this kind is pending under this id."""
        for interaction in self._stream.pending:
            if interaction.interaction_id == interaction_id and kind in {None, interaction.kind}:
                pending = self._pending.get(interaction.request_id)
                if pending is None or pending.decided.is_set():
                    return False
                pending.decision = decision
                pending.decided.set()
                return True
        return False

    def stop_asking(self) -> None:
        """Deny all pending and future requests, because no user is left to answer them."""
        self._has_no_user = True
        for pending in self._pending.values():
            if not pending.decided.is_set():
                pending.decision = InteractionDecision(False, NO_APPROVER)
                pending.decided.set()

    # -- internals

    def _is_allowed(self, context: ToolGate) -> bool:
        stays = not _leaves_sandbox(context)
        if approval_key(context) in self._approved_keys or (self._mode == "yolo" and stays):
            return True
        tool = context.tool
        if tool is None or not stays:
            return stays  # without a tool, nothing will run: the model gets an error that there is no such tool
        kind: ToolKind = kind_of(tool)
        if self._asks_everything:
            return kind == "ask"
        if context.name in self._allowed_tools and self._mode != "plan":
            return True
        if kind == "edit" and self._accepts_edits and self._mode == "prompt":
            return True
        return needs_no_approval(tool)

    def _announce(self, context: ToolGate, preview: CallPreview | None) -> facts.ApprovalRequested:
        """Emit the tool call and return the request about it, so that the call precedes the request."""
        command = shell_command_of(context.tool, context.arguments) if context.tool is not None else None
        call_id: str | None = None  # calls inside a sub-agent are not part of the main stream
        if not context.depth:
            call_id = self._stream.call_id_of(context.call_id)
            self._stream.emit(_beginning(call_id, context))
        request = approval_request(context, self._next_id(), call_id, command)
        if preview is not None:
            detail = ", ".join(preview.paths) or request.detail
            return replace(request, detail=detail, paths=preview.paths, diff=preview.diff or None)
        if not request.edits:
            return request
        texts = read_files((edit.path for edit in request.edits), self._directory)
        return replace(request, diff=diff_of_edits(request.edits, self._directory, texts) or None)

    async def _wait(
        self, request: facts.ApprovalRequested | facts.InputRequested, without_user: str
    ) -> InteractionDecision:
        """Emit a request and wait for the decision. `without_user` is the reason of a denial if there is no user."""
        if self._has_no_user:
            decision = InteractionDecision(False, without_user)
            self._stream.emit(request, _settled(request, decision))
            return decision
        pending = self._pending[request.request_id] = _PendingDecision()
        self._stream.emit(request)
        try:
            if self._asker is not None:
                pending.decision = await self._ask_user(request.request_id, self._asker)
            else:
                await pending.decided.wait()
        finally:
            del self._pending[request.request_id]
            self._stream.emit(_settled(request, pending.decision))
        return pending.decision

    async def _ask_user(self, request_id: str, asker: Asker) -> InteractionDecision:
        async with self._asker_lock:
            for interaction in self._stream.pending:
                if interaction.request_id == request_id:
                    return await asker(interaction)
        return InteractionDecision(False, STOPPED)

    def _next_id(self) -> str:
        self._request_count += 1
        return str(self._request_count)


def approval_request(
    context: ToolGate, request_id: str, call_id: str | None, command: str | None
) -> facts.ApprovalRequested:
    """Return the approval request for a tool call, with everything that a user needs to decide.

    `command` is the command line that the call runs, None if it runs none.
    """
    kind: ToolKind = kind_of(context.tool) if context.tool is not None else "other"
    risk: facts.Risk = "medium"
    if command is not None:
        risk = risk_of_command(command)
    elif context.tool is not None:
        risk = risk_of(context.tool)
    name = label_of(context.tool) if context.tool is not None else context.name
    action, paths = _ACTIONS[kind], _paths_in(context.arguments)
    if _leaves_sandbox(context):
        action, risk = f"{action} without the sandbox", "high"
    return facts.ApprovalRequested(
        request_id,
        f"{action} ({name})",
        command if command is not None else _detail(context.arguments, paths if kind == "edit" else ()),
        risk,
        context.name,
        call_id,
        command,
        paths,
        dict(context.arguments),
        edits=edits_of(context.arguments) if kind == "edit" else (),
    )


def approval_key(context: ToolGate) -> ApprovalKey:
    """Return the key of the calls that "always" approves: the same command line, or all calls of another tool."""
    command = shell_command_of(context.tool, context.arguments) if context.tool is not None else None
    return context.name, command or "", _leaves_sandbox(context)


def _leaves_sandbox(context: ToolGate) -> bool:
    return context.tool is not None and leaves_sandbox(context.tool, context.arguments)


def _detail(arguments: Mapping[str, Any], edited: tuple[str, ...]) -> str:
    """Return one line about a call. The content of `edited` files is in the diff and in the input of the tool."""
    if edited:
        return ", ".join(edited)
    if len(arguments) == 1:
        (name, value), *_ = arguments.items()
        if name in _DETAIL_ARGUMENTS and isinstance(value, str):
            return value
    return to_json(dict(arguments))


def _paths_in(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for name in _PATH_ARGUMENTS:
        value = arguments.get(name)
        found += [value] if isinstance(value, str) else []
        found += [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return tuple(found)


def _settled(request: Any, decision: InteractionDecision) -> facts.RequestResolved:
    reason = None if decision.granted else decision.text or None
    return facts.RequestResolved(request.request_id, decision.granted, reason)


def _beginning(call_id: str, context: ToolGate) -> facts.Fact:
    """Return the fact with which a call begins."""
    arguments, origin = dict(context.arguments), mcp_origin_of(context.tool)
    if origin is not None:
        return facts.McpBegin(call_id, origin.server, origin.tool, arguments)
    command = None if context.tool is None else foreground_command_of(context.tool, arguments)
    shell = None if command is None else facts.ShellInvocation(command)
    return facts.ToolReady(call_id, context.name, arguments, shell)
