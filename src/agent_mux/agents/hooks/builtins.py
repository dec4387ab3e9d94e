"""The built-in handlers: `log`, `trace` and `policy`."""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux._util.paths import config_dir
from agent_mux.agents.hooks.encoding import call_to_plain
from agent_mux.agents.hooks.registrations import Builtin, HandlerFailedError, Registration
from agent_mux.errors import AgentMuxError
from agent_mux.redaction import HIDDEN, is_secret_name, redact_text
from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES, NO_OPINION, HookCall, HookDecision

LONGEST_TEXT = 4000
"""Characters of a logged value, and items of a logged table or list; the rest is cut off."""
DENIED_BY_POLICY = "denied by a policy of agent-mux"
_MAX_DEPTH = 20


def run_builtin(registration: Registration, call: HookCall) -> HookDecision:
    """Call a built-in handler. Raises `HandlerFailedError`."""
    return _BUILTINS[registration.target[0]](registration, call)  # type: ignore[index]


def _log(registration: Registration, call: HookCall) -> HookDecision:
    """Append the call as a JSON line to a file that only its owner can read."""
    plain = {name: value for name, value in call_to_plain(call).items() if name != "raw"}
    _append(registration.file() or config_dir() / "hooks.log.jsonl", {"time": _now(), **plain})
    return NO_OPINION


def _trace(registration: Registration, call: HookCall) -> HookDecision:
    """Record a span if this process uses OpenTelemetry; append a line to a file if not, or if one is named."""
    attributes = {
        "agent_mux.agent": call.agent,
        "agent_mux.hook.type": call.hook_type,
        "agent_mux.session.id": call.session_id,
        "gen_ai.tool.name": call.tool_name,
        "gen_ai.tool.call.id": call.tool_call_id,
    }
    known = {name: value for name, value in attributes.items() if value is not None}
    is_traced = _record_span(f"hook {call.hook_type}", known)
    file = registration.file()
    if file is not None or not is_traced:
        entry = {"time": _now(), "timeUnixNano": time.time_ns(), "name": f"hook {call.hook_type}", "attributes": known}
        _append(file or config_dir() / "hooks.trace.jsonl", entry)
    return NO_OPINION


def _record_span(name: str, attributes: Mapping[str, str]) -> bool:
    """Record a span; return False if OpenTelemetry is not configured in this process."""
    import sys  # noqa: PLC0415

    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import trace  # noqa: PLC0415  # an optional dependency

    with trace.get_tracer("agent_mux").start_as_current_span(name, attributes=dict(attributes)) as span:
        return span.is_recording()


def _policy(registration: Registration, call: HookCall) -> HookDecision:
    """Decide by the rules of a policy file. If no rule applies, a `default` of `deny` denies."""
    if call.hook_type not in GUARDED_HOOK_TYPES:
        return NO_OPINION
    from agent_mux.sdk.policy import PolicyRequest, read_policy  # noqa: PLC0415  # needed for some calls only
    from agent_mux.sdk.shell_commands import risk_of_command  # noqa: PLC0415

    file = registration.file()
    assert file is not None  # noqa: S101  # checked when parsed
    try:
        policy = read_policy(file)
        risk = None if call.command is None else risk_of_command(call.command)
        cwd = call.cwd or str(Path.cwd())
        ruling = policy.ruled(
            PolicyRequest(tool=call.tool_name, command=call.command, paths=call.paths, risk=risk, cwd=cwd)
        )
    except (AgentMuxError, ValueError, OSError) as error:
        raise HandlerFailedError(str(error)) from error
    if ruling is None:
        return HookDecision(behavior="deny", reason=DENIED_BY_POLICY) if policy.default == "deny" else NO_OPINION
    reason = ruling.reason or (DENIED_BY_POLICY if ruling.decision == "deny" else None)
    return HookDecision(behavior=ruling.decision, reason=reason)


_BUILTINS: Mapping[Builtin, Callable[[Registration, HookCall], HookDecision]] = {
    "log": _log,
    "trace": _trace,
    "policy": _policy,
}


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    line = redact_text(json.dumps(_to_log(entry), default=str)) + "\n"
    try:
        make_directory(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise HandlerFailedError(f"cannot write {path}: {error.strerror or error}") from error


def _to_log(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a value without secrets and shortened."""
    if isinstance(value, str):
        return HIDDEN if value and is_secret_name(name) else redact_text(value[:LONGEST_TEXT])
    if depth > _MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _to_log(item, str(key), depth + 1) for key, item in list(value.items())[:LONGEST_TEXT]}
    if isinstance(value, list | tuple):
        return [_to_log(item, name, depth + 1) for item in value[:LONGEST_TEXT]]
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
