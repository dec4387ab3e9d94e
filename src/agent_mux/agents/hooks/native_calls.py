"""The other end of a native hook: an agent runs us, tells us what happens, and waits for the answer.

What goes wrong here must not let through what a policy would have kept. So where something is about to happen, the
answer is no when the registrations cannot be read, or when what the agent says cannot be read and a policy is
registered. In all other cases the agent goes on, and standard error says what was wrong.
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
from agent_mux.sdk.hooks import ANY_AGENT, CALLED_FROM_EVENTS, GUARDED, HOOK_TYPES, HookCall, HookDecision, HookType

if TYPE_CHECKING:
    from agent_mux.sdk.hooks import HookAnswer, NativeHooks

LARGEST_INPUT = 64 << 20
"""Bytes that an agent may say to a hook."""


@dataclass(frozen=True, slots=True)
class NativeHookCall:
    """An agent has run us."""

    agent: str
    hook_type: HookType
    native: "NativeHooks"
    environ: Mapping[str, str]
    own: Path | None = None
    """The global directory, if it is not the usual one."""


def native_hook_call(agent: str, hook_type: str, environ: Mapping[str, str] = os.environ) -> NativeHookCall:
    """Check who calls, and why. Raises AGENT_NOT_FOUND, CAPABILITY_ERROR, VALIDATION_ERROR."""
    from agent_mux.errors import CapabilityError  # noqa: PLC0415
    from agent_mux.sdk.registry import AdapterRegistry  # noqa: PLC0415

    adapter = AdapterRegistry().get(agent)
    native = adapter.home().hooks
    if native is None:
        raise CapabilityError(adapter.agent, "hooks of its own")
    kind = next((known for known in HOOK_TYPES if known == hook_type), None)
    if kind is None or kind not in native.types:
        known = ", ".join(native.types)
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} has no hook {hook_type!r}; it has: {known}")
    return NativeHookCall(adapter.agent, kind, native, environ)


def has_no_handlers(agent: str, hook_type: str, stdin: bytes, own: Path | None = None) -> bool:
    """Nobody is registered for this: known without looking at the agent, which takes most of the time."""
    if hook_type not in HOOK_TYPES:
        return False
    try:
        files = HookFiles.around(_directory(_said(stdin)), own)
        return files.untrusted is None and not any(
            one.enabled and one.agent in (ANY_AGENT, agent) and one.hook_type in (ANY_AGENT, hook_type)
            for one in files.effective()
        )
    except (AgentMuxError, OSError, ValueError):
        return False


def answer_native_call(asked: NativeHookCall, stdin: bytes) -> "HookAnswer":
    """The answer to what the agent wrote. Never raises."""
    from agent_mux.sdk.hooks import HookAnswer  # noqa: PLC0415

    agent, _, types = asked.environ.get(CALLED_FROM_EVENTS, "").partition(":")
    if agent == (asked.native.caller(asked.environ) or asked.agent) and asked.hook_type in types.split(","):
        return HookAnswer()
    said = _said(stdin)
    registrations: tuple[Registration, ...] | None = None
    try:
        files = HookFiles.around(_directory(said), asked.own)
        registrations = files.effective()
        untrusted = files.untrusted
        notes = [] if untrusted is None else [f"the hooks of {untrusted} are not trusted; see `amux hooks trust`"]
        call = _call(asked, said)
        if call is None:
            return HookAnswer()
        outcome = dispatch_call(call, registrations)
        answer = asked.native.answer(call, outcome.decision)
        return _with_notes(answer, [*notes, *outcome.warnings])
    except Exception as error:  # noqa: BLE001  # whatever it is, the agent needs an answer
        return _failed(asked, registrations, error)


def _call(asked: NativeHookCall, said: Mapping[str, Any] | None) -> HookCall | None:
    """None: another agent called, and it calls us by itself, too."""
    if said is None:
        raise AgentMuxError("PARSE_ERROR", f"what {asked.agent} said to its hook is no JSON object")
    call = asked.native.read(asked.hook_type, said)
    caller = asked.native.caller(asked.environ)
    if caller is None:
        return call
    return None if _calls_itself(caller, asked, _directory(said)) else replace(call, agent=caller)


def _calls_itself(agent: str, asked: NativeHookCall, directory: Path) -> bool:
    from agent_mux.agents.hooks.native_hooks import NativeHookInstaller  # noqa: PLC0415  # rarely

    statuses = NativeHookInstaller(own=asked.own, directory=directory).status(agent)
    return any(asked.hook_type in types for status in statuses for types in status.installed.values())


def _said(stdin: bytes) -> Mapping[str, Any] | None:
    try:
        said = json.loads(stdin)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _directory(said: Mapping[str, Any] | None) -> Path:
    named = (said or {}).get("cwd")
    if isinstance(named, str) and "\0" not in named and Path(named).is_absolute() and Path(named).is_dir():
        return Path(named)
    return Path.cwd()


def _failed(asked: NativeHookCall, registrations: tuple[Registration, ...] | None, error: Exception) -> "HookAnswer":
    from agent_mux.sdk.hooks import HookAnswer  # noqa: PLC0415

    why = str(error) if isinstance(error, AgentMuxError) else f"agent-mux failed: {error!r}"
    call = HookCall(agent=asked.agent, hook_type=asked.hook_type)
    guards = registrations is None or any(one.is_policy and one.applies_to(call) for one in registrations)
    if asked.hook_type in GUARDED and guards:
        return _with_notes(asked.native.answer(call, HookDecision(behavior="deny", reason=why)), [why])
    return _with_notes(HookAnswer(), [why])


def _with_notes(answer: "HookAnswer", notes: list[str]) -> "HookAnswer":
    from agent_mux.sdk.hooks import HookAnswer  # noqa: PLC0415

    if not notes:
        return answer
    from agent_mux.redaction import redact_text  # noqa: PLC0415

    lines = "".join(f"warning: {redact_text(' '.join(note.split()))}\n" for note in notes)
    return HookAnswer(stdout=answer.stdout, stderr=answer.stderr + lines, exit_code=answer.exit_code)
