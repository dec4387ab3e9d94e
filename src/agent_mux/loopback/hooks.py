"""Python functions of the caller as hooks: calling them with a time limit, and checking what they return."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
from anyio import CapacityLimiter

from agent_mux.loopback.functions import MAX_THREADS, call_in_loop_or_thread
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, NO_OPINION, HookCall, HookDecision, HookOutcome, HookType
from agent_mux.sdk.in_process import HOOK_TIMEOUT, Block, HookFunction


class FunctionHooks:
    """The hook functions of one run, one for each type."""

    def __init__(
        self, functions: Mapping[HookType, HookFunction], decides: frozenset[HookType], changes_input: bool
    ) -> None:
        """Take the functions.

        Args:
            functions: The functions by hook type.
            decides: Types in which a decision has an effect; elsewhere it becomes a warning.
            changes_input: Whether a changed input reaches the tool. If not, such a call is denied.
        """
        self._functions = functions
        self._decides, self._changes_input = decides, changes_input
        self._threads: CapacityLimiter | None = None  # needs an event loop

    def __contains__(self, hook_type: HookType) -> bool:
        return hook_type in self._functions

    @property
    def types(self) -> frozenset[HookType]:
        """The types that have a function."""
        return frozenset(self._functions)

    async def call(self, call: HookCall) -> HookOutcome:
        """Call the function for this call, if there is one.

        A failure is a warning. It denies an action that has not happened yet.
        """
        function = self._functions.get(call.hook_type)
        if function is None:
            return HookOutcome(NO_OPINION)
        name = f"the hook {call.hook_type} ({getattr(function, '__name__', type(function).__name__)})"
        if self._threads is None:
            self._threads = CapacityLimiter(MAX_THREADS)
        try:
            with anyio.fail_after(HOOK_TIMEOUT):
                returned = await call_in_loop_or_thread(function, {}, self._threads, call)
            decision = _decision_of(returned)
        except TimeoutError:
            return self._failure(call, f"{name} did not return within {HOOK_TIMEOUT:g} s")
        except Exception as error:  # noqa: BLE001  # a function of the caller may raise anything
            return self._failure(call, f"{name} failed: {type(error).__name__}: {error}")
        return self._checked(call, decision, name)

    def _failure(self, call: HookCall, message: str) -> HookOutcome:
        is_guard = call.hook_type in GUARDED_HOOK_TYPES
        decision = HookDecision(behavior="deny", reason=message) if is_guard else NO_OPINION
        return HookOutcome(decision, (message,))

    def _checked(self, call: HookCall, decision: HookDecision, name: str) -> HookOutcome:
        if decision.behavior is not None and call.hook_type not in self._decides:
            return HookOutcome(NO_OPINION, (f"{name} decided {decision.behavior}, which {call.agent} cannot do there",))
        if decision.modified_input is None:
            return HookOutcome(decision)
        if call.hook_type != "pre_tool_use":
            return self._failure(call, f"{name} changed the input of a tool, which only pre_tool_use can do")
        if not self._changes_input:
            return self._failure(
                call, f"{name} changed the input of {call.tool_name}, which {call.agent} cannot accept"
            )
        whole = {**(call.tool_input or {}), **decision.modified_input}
        return HookOutcome(replace(decision, modified_input=whole))


def _decision_of(returned: Any) -> HookDecision:
    match returned:
        case None:
            return NO_OPINION
        case HookDecision():
            return returned
        case Block(reason):
            return HookDecision(behavior="deny", reason=reason or None)
        case Mapping():
            return HookDecision(modified_input=dict(returned))
    kind = type(returned).__name__
    raise TypeError(f"it returned {kind}; allowed: None, Block, HookDecision, or a mapping with the changed input")


def join_outcomes(first: HookOutcome, second: HookOutcome) -> HookOutcome:
    """Return one outcome of two: a denial before a question, a question before an approval, an approval before none."""
    order = ("deny", "ask", "allow", None)
    one, other = sorted((first.decision, second.decision), key=lambda decision: order.index(decision.behavior))
    modified = one.modified_input if one.modified_input is not None else other.modified_input
    context = "\n\n".join(text for text in (first.decision.context, second.decision.context) if text) or None
    return HookOutcome(replace(one, modified_input=modified, context=context), (*first.warnings, *second.warnings))
