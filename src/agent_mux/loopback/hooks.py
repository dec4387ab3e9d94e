"""Python functions of the caller as hooks: calling them with a time limit, and checking what they return."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import CapacityLimiter

from agent_mux._util.logs import LOGGER
from agent_mux.errors import ValidationError
from agent_mux.loopback.calls import MAX_THREADS, FunctionFailed, call_function
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, NO_OPINION, HookCall, HookDecision, HookOutcome, HookType
from agent_mux.sdk.in_process import HOOK_TIMEOUT, Block, HookFunction


class FunctionHooks:
    """The hook functions of one run, one for each type."""

    def __init__(
        self, functions: Mapping[HookType, HookFunction], decides: frozenset[HookType], is_native: bool
    ) -> None:
        """Take the functions.

        Args:
            functions: The functions by hook type.
            decides: Types in which a decision has an effect; elsewhere it becomes a warning.
            is_native: Whether the agent itself calls the functions. If not, a call whose input is changed is denied,
                and added context becomes a warning.
        """
        self._functions = functions
        self._decides, self._is_native = decides, is_native
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
            decision = _decision_of(await call_function(partial(function, call), self._threads, HOOK_TIMEOUT))
        except FunctionFailed as failure:
            if failure.raised is None:
                return self._failure(call, f"{name} did not return within {HOOK_TIMEOUT:g} s")
            logging.getLogger(LOGGER).warning("%s raised", name, exc_info=failure.raised)
            return self._failure(call, f"{name} failed: {failure}")
        except (TypeError, ValidationError) as error:  # of what it returned
            message = f"{name} failed: {type(error).__name__}: {error}"
            logging.getLogger(LOGGER).warning("%s", message)
            return self._failure(call, message)
        return self._checked(call, decision, name)

    def _failure(self, call: HookCall, message: str) -> HookOutcome:
        is_guard = call.hook_type in GUARDED_HOOK_TYPES
        decision = HookDecision(behavior="deny", reason=message) if is_guard else NO_OPINION
        return HookOutcome(decision, (message,))

    def _checked(self, call: HookCall, decision: HookDecision, name: str) -> HookOutcome:
        if decision.behavior is not None and call.hook_type not in self._decides:
            return HookOutcome(NO_OPINION, (f"{name} decided {decision.behavior}, which {call.agent} cannot do there",))
        if decision.modified_input is not None:
            if call.hook_type != "pre_tool_use":
                return self._failure(call, f"{name} changed the input of a tool, which only pre_tool_use can do")
            if not self._is_native:
                return self._failure(
                    call, f"{name} changed the input of {call.tool_name}, which {call.agent} cannot accept"
                )
            whole = {**(call.tool_input or {}), **decision.modified_input}
            decision = replace(decision, modified_input=whole)
        if decision.context and not self._is_native:
            return HookOutcome(replace(decision, context=None), (context_warning(call, name),))
        return HookOutcome(decision)


def context_warning(call: HookCall, name: str) -> str:
    """Return the warning for context that does not reach the model."""
    return f"{name} added context, which {call.agent} cannot accept there"


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
