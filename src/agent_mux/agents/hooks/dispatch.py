"""Calling all handlers that are registered for a hook call, and combining their decisions.

- Handlers are called in the order of their priorities. A denial is final; later handlers are still called.
- A modified input is passed to the following handlers, and an earlier permission does not apply to it.
- Context for the agent is concatenated.
- A failing policy denies an action that has not happened yet. Any other failing handler is skipped with a warning.

See docs/spec/run-api.md, section 7.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent_mux.agents.hooks.registrations import HandlerFailedError, Registration
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, HookCall, HookDecision, HookOutcome


def dispatch_call(call: HookCall, registrations: Iterable[Registration]) -> HookOutcome:
    """Call the handlers that apply to a call, in the given order. Returns the decision and the warnings."""
    warnings: list[str] = []
    combined = HookDecision()
    for registration in registrations:
        if registration.applies_to(call):
            decision = _call_handler(registration, call, warnings)
            combined = _combine(combined, decision)
            if decision.modified_input and combined.behavior != "deny":
                call = _with_input(call, decision.modified_input)
    whole_input = dict(call.tool_input or {}) if combined.modified_input else None
    return HookOutcome(replace(combined, modified_input=whole_input), tuple(warnings))


def _call_handler(registration: Registration, call: HookCall, warnings: list[str]) -> HookDecision:
    try:
        return _handler(registration)(registration, call)
    except HandlerFailedError as error:
        failure = f"the hook {registration.id!r} failed: {error}"
    if registration.is_policy and call.hook_type in GUARDED_HOOK_TYPES:
        return HookDecision(behavior="deny", reason=failure)
    warnings.append(failure)
    return HookDecision()


def _handler(registration: Registration) -> Callable[[Registration, HookCall], HookDecision]:
    # The agent waits for the answer: modules are imported only when needed.
    if registration.handler == "builtin":
        from agent_mux.agents.hooks.builtins import run_builtin  # noqa: PLC0415

        return run_builtin
    from agent_mux.agents.hooks.programs import run_command, run_script  # noqa: PLC0415

    return run_command if registration.handler == "command" else run_script


def _combine(before: HookDecision, decision: HookDecision) -> HookDecision:
    context = "\n\n".join(text for text in (before.context, decision.context) if text) or None
    if before.behavior == "deny" or decision.behavior == "deny":
        denial = before if before.behavior == "deny" else decision
        return HookDecision(behavior="deny", reason=denial.reason, context=context)
    if decision.modified_input:
        modified = {**(before.modified_input or {}), **decision.modified_input}
        kept = before if before.behavior == "ask" else decision
        return replace(kept, modified_input=modified, context=context)
    kept = before if before.behavior == "ask" or decision.behavior is None else decision
    return replace(kept, modified_input=before.modified_input, context=context)


def _with_input(call: HookCall, modified: Mapping[str, Any]) -> HookCall:
    """Return the call with a modified input, and with command and paths changed accordingly."""
    before = dict(call.tool_input or {})
    changed = {value: modified[name] for name, value in before.items() if name in modified and isinstance(value, str)}
    command = changed.get(call.command, call.command) if call.command is not None else None
    paths = tuple(str(changed.get(path, path)) for path in call.paths)
    is_text = isinstance(command, str | None)
    return replace(call, tool_input={**before, **modified}, command=command if is_text else str(command), paths=paths)
