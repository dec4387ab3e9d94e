"""One call, and all who are registered for it: in the order of their priorities, to one decision. Run API, section 7.

- No is final: who comes later is still called, and cannot allow any more.
- A modified input is what the next one is asked about; a yes from before does not count for it.
- Texts for the agent are joined.
- A policy that fails says no to what is about to happen. Whatever else fails has no opinion, and that is told.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent_mux.agents.hooks.registrations import HandlerFailedError, Registration
from agent_mux.sdk.hooks import GUARDED, HookCall, HookDecision, HookOutcome

Warn = Callable[[str], None]


def dispatch(call: HookCall, registrations: Iterable[Registration], warn: Warn) -> HookDecision:
    """Ask everybody who is registered for this call; they are in their order already.

    `warn` is told, a sentence each, who failed.
    """
    result = HookDecision()
    for registration in registrations:
        if registration.applies_to(call):
            said = _ask(registration, call, warn)
            result = _joined(result, said)
            if said.modified_input and result.behavior != "deny":
                call = _modified(call, said.modified_input)
    whole = dict(call.tool_input or {}) if result.modified_input else None
    return replace(result, modified_input=whole)


def _ask(registration: Registration, call: HookCall, warn: Warn) -> HookDecision:
    try:
        return _handler(registration)(registration, call)
    except HandlerFailedError as error:
        failure = f"the hook {registration.id!r} failed: {error}"
    if registration.is_policy and call.hook_type in GUARDED:
        return HookDecision(behavior="deny", reason=failure)
    warn(failure)
    return HookDecision()


def _handler(registration: Registration) -> Callable[[Registration, HookCall], HookDecision]:
    # An agent waits: what is not needed is not imported.
    if registration.handler == "builtin":
        from agent_mux.agents.hooks.builtins import run_builtin  # noqa: PLC0415

        return run_builtin
    from agent_mux.agents.hooks.programs import run_command, run_script  # noqa: PLC0415

    return run_command if registration.handler == "command" else run_script


def _joined(before: HookDecision, said: HookDecision) -> HookDecision:
    context = "\n\n".join(text for text in (before.context, said.context) if text) or None
    if before.behavior == "deny" or said.behavior == "deny":
        first = before if before.behavior == "deny" else said
        return HookDecision(behavior="deny", reason=first.reason, context=context)
    if said.modified_input:
        modified = {**(before.modified_input or {}), **said.modified_input}
        kept = before if before.behavior == "ask" else said
        return replace(kept, modified_input=modified, context=context)
    kept = before if before.behavior == "ask" or said.behavior is None else said
    return replace(kept, modified_input=before.modified_input, context=context)


def _modified(call: HookCall, modified: Mapping[str, Any]) -> HookCall:
    """The call with this input: what rules look at follows."""
    before = dict(call.tool_input or {})
    changed = {value: modified[name] for name, value in before.items() if name in modified and isinstance(value, str)}
    command = changed.get(call.command, call.command) if call.command is not None else None
    paths = tuple(str(changed.get(path, path)) for path in call.paths)
    is_text = isinstance(command, str | None)
    return replace(call, tool_input={**before, **modified}, command=command if is_text else str(command), paths=paths)


def dispatch_call(call: HookCall, registrations: Iterable[Registration]) -> HookOutcome:
    """As `dispatch`, with the warnings."""
    warnings: list[str] = []
    return HookOutcome(dispatch(call, registrations, warnings.append), tuple(warnings))
