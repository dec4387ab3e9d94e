"""Answering a native hook: the agent runs `amux`, writes the hook call to its stdin, and waits for the answer.

A failure here must not permit what a policy would deny. Therefore an action that has not happened yet is denied if the
registrations cannot be read, or if the agent's input cannot be parsed and a policy is registered. In all other cases
the agent continues, and the failure is printed to stderr.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mux.agents.hooks.dispatch import dispatch_call
from agent_mux.agents.hooks.hooks_json import HookFiles
from agent_mux.agents.hooks.registrations import Registration
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.hooks import (
    ANY_AGENT,
    CALLED_FROM_EVENTS,
    GUARDED_HOOK_TYPES,
    HOOK_TYPES,
    HookCall,
    HookDecision,
    HookType,
)

if TYPE_CHECKING:
    from agent_mux.sdk.hooks import HookResponse, NativeHooks

LARGEST_INPUT = 64 << 20
"""Bytes that an agent may write to a hook."""


@dataclass(frozen=True, slots=True)
class NativeHookCall:
    """One invocation of `amux` by an agent, before its input is parsed."""

    agent: str
    hook_type: HookType
    native: "NativeHooks"
    environ: Mapping[str, str]
    own: Path | None = None
    """The global directory, if it is not the default one."""


def native_hook_call(agent: str, hook_type: str, environ: Mapping[str, str] = os.environ) -> NativeHookCall:
    """Validate agent and hook type. Raises AGENT_NOT_FOUND, CAPABILITY_ERROR, VALIDATION_ERROR."""
    from agent_mux.errors import CapabilityError  # noqa: PLC0415
    from agent_mux.sdk.registry import AdapterRegistry  # noqa: PLC0415

    adapter = AdapterRegistry().get(agent)
    native = adapter.installation().hooks
    if native is None:
        raise CapabilityError(adapter.agent, "native hooks")
    kind = next((known for known in HOOK_TYPES if known == hook_type), None)
    if kind is None or kind not in native.types:
        known = ", ".join(native.types)
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} has no hook {hook_type!r}; it has: {known}")
    return NativeHookCall(adapter.agent, kind, native, environ)


def has_no_handlers(agent: str, hook_type: str, stdin: bytes, own: Path | None = None) -> bool:
    """Return whether no handler is registered for a hook, without loading the adapter, which takes most of the time."""
    if hook_type not in HOOK_TYPES:
        return False
    try:
        files = HookFiles.around(_working_directory(_parse_object(stdin)), own)
        return files.untrusted is None and not any(
            one.enabled and one.agent in (ANY_AGENT, agent) and one.hook_type in (ANY_AGENT, hook_type)
            for one in files.effective()
        )
    except (AgentMuxError, OSError, ValueError):
        return False


def answer_native_call(native_call: NativeHookCall, stdin: bytes) -> "HookResponse":
    """Parse the agent's input, call the handlers, and return the answer in the agent's format. Never raises."""
    from agent_mux.sdk.hooks import HookResponse  # noqa: PLC0415

    agent, _, types = native_call.environ.get(CALLED_FROM_EVENTS, "").partition(":")
    caller = native_call.native.caller(native_call.environ) or native_call.agent
    if agent == caller and native_call.hook_type in types.split(","):
        return HookResponse()  # the run calls this hook itself
    content = _parse_object(stdin)
    registrations: tuple[Registration, ...] | None = None
    try:
        files = HookFiles.around(_working_directory(content), native_call.own)
        registrations = files.effective()
        untrusted = files.untrusted
        notes = [] if untrusted is None else [f"the hooks of {untrusted} are not trusted; see `amux hooks trust`"]
        call = _parse_call(native_call, content)
        if call is None:
            return HookResponse()
        outcome = dispatch_call(call, registrations)
        answer = native_call.native.answer(call, outcome.decision)
        return _with_warnings(answer, [*notes, *outcome.warnings])
    except Exception as error:  # noqa: BLE001  # the agent needs an answer in every case
        return _failure_answer(native_call, registrations, error)


def _parse_call(native_call: NativeHookCall, content: Mapping[str, Any] | None) -> HookCall | None:
    """Return the hook call; None if it comes from another agent that also calls our hook under its own name."""
    if content is None:
        raise AgentMuxError("PARSE_ERROR", f"the input of the {native_call.agent} hook is not a JSON object")
    call = native_call.native.read(native_call.hook_type, content)
    caller = native_call.native.caller(native_call.environ)
    if caller is None:
        return call
    is_duplicate = _has_own_hook(caller, native_call, _working_directory(content))
    return None if is_duplicate else replace(call, agent=caller)


def _has_own_hook(agent: str, native_call: NativeHookCall, directory: Path) -> bool:
    from agent_mux.agents.hooks.native_hooks import NativeHookInstaller  # noqa: PLC0415  # rarely needed

    statuses = NativeHookInstaller(own=native_call.own, directory=directory).status(agent)
    return any(native_call.hook_type in types for status in statuses for types in status.installed.values())


def _parse_object(stdin: bytes) -> Mapping[str, Any] | None:
    try:
        content = json.loads(stdin)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _working_directory(content: Mapping[str, Any] | None) -> Path:
    named = (content or {}).get("cwd")
    if isinstance(named, str) and "\0" not in named and Path(named).is_absolute() and Path(named).is_dir():
        return Path(named)
    return Path.cwd()


def _failure_answer(
    native_call: NativeHookCall, registrations: tuple[Registration, ...] | None, error: Exception
) -> "HookResponse":
    from agent_mux.sdk.hooks import HookResponse  # noqa: PLC0415

    reason = str(error) if isinstance(error, AgentMuxError) else f"agent-mux failed: {error!r}"
    call = HookCall(agent=native_call.agent, hook_type=native_call.hook_type)
    may_be_denied = registrations is None or any(one.is_policy and one.applies_to(call) for one in registrations)
    if native_call.hook_type in GUARDED_HOOK_TYPES and may_be_denied:
        denial = HookDecision(behavior="deny", reason=reason)
        return _with_warnings(native_call.native.answer(call, denial), [reason])
    return _with_warnings(HookResponse(), [reason])


def _with_warnings(answer: "HookResponse", warnings: list[str]) -> "HookResponse":
    from agent_mux.sdk.hooks import HookResponse  # noqa: PLC0415

    if not warnings:
        return answer
    from agent_mux.redaction import redact_text  # noqa: PLC0415

    lines = "".join(f"warning: {redact_text(' '.join(warning.split()))}\n" for warning in warnings)
    return HookResponse(stdout=answer.stdout, stderr=answer.stderr + lines, exit_code=answer.exit_code)
