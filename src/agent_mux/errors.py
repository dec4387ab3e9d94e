"""The errors that callers of agent-mux receive, and their codes. See docs/spec/run-api.md, section 4.

    AgentMuxError                   code, message, recoverable
    ├── ValidationError             fields                      invalid options; nothing was started
    ├── CapabilityError             agent, capability, model    the agent or model does not support an option
    ├── AuthError                   agent, status, guidance     the agent has no usable credentials
    └── MissingExtraError           extra                       packages of an extra are missing; an ImportError too

A subclass exists where callers handle its data; all other errors are distinguished by `code`. Errors store data, and
their messages contain no secrets. Exceptions that never reach callers are defined beside the code that raises them, for
example `sdk.documents.DocumentError` and `sdk.sessions.UnreadableSessionError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

ErrorCode = Literal[
    "CAPABILITY_ERROR",
    "VALIDATION_ERROR",
    "AUTH_ERROR",
    "AGENT_NOT_FOUND",
    "AGENT_NOT_INSTALLED",
    "AGENT_CRASH",
    "SPAWN_ERROR",
    "TIMEOUT",
    "INACTIVITY_TIMEOUT",
    "PARSE_ERROR",
    "CONFIG_ERROR",
    "CONFIG_LOCK_ERROR",
    "SESSION_NOT_FOUND",
    "PROFILE_NOT_FOUND",
    "PLUGIN_ERROR",
    "RATE_LIMITED",
    "NETWORK_ERROR",
    "CONTEXT_EXCEEDED",
    "ABORTED",
    "RUN_LOST",
    "RUN_NOT_ACTIVE",
    "STDIN_NOT_AVAILABLE",
    "NO_PENDING_INTERACTION",
    "INTERACTION_NOT_FOUND",
    "INVALID_STATE_TRANSITION",
    "PTY_NOT_AVAILABLE",
    "BUDGET_EXCEEDED",
    "CONTENT_FILTERED",
    "TURN_LIMIT",
    "EMPTY_ANSWER",
    "LOOP_DETECTED",
    "INTERNAL",
]
"""Codes of errors in runs, configuration and installations of agents; also used in error events."""
ServiceCode = Literal["LIMIT_EXCEEDED", "RUN_NOT_FOUND", "NOT_FOUND", "UNAUTHENTICATED", "FORBIDDEN", "UNAVAILABLE"]
"""Additional codes of the run queue, the HTTP service and its clients; never used in events."""
CommandCode = Literal["OUTPUT_ERROR"]
"""Additional codes of the command line; never used in events and answers of a service."""
AnyCode = ErrorCode | ServiceCode | CommandCode

ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
SERVICE_CODES: tuple[ServiceCode, ...] = get_args(ServiceCode)

RECOVERABLE: frozenset[AnyCode] = frozenset(
    {
        "CONFIG_LOCK_ERROR",
        "RATE_LIMITED",
        "NETWORK_ERROR",
        "LIMIT_EXCEEDED",
        "UNAVAILABLE",
        "NO_PENDING_INTERACTION",
        "INTERACTION_NOT_FOUND",
        "TIMEOUT",
    }
)
"""Codes of errors that may disappear when the caller repeats the same call."""


class AgentMuxError(Exception):
    """Base of all errors of agent-mux. `message` states the cause, the object concerned and the next step.

    Args:
        code: Identifies the kind of error.
        message: Secrets in it are hidden.
        recoverable: Whether repeating the call may succeed; None: as `RECOVERABLE` lists the code.
    """

    def __init__(self, code: AnyCode, message: str, *, recoverable: bool | None = None) -> None:
        message = _redact(message)
        super().__init__(code, message)
        self.code: AnyCode = code
        self.message = message
        self.recoverable = code in RECOVERABLE if recoverable is None else recoverable

    def __str__(self) -> str:
        return self.message


NO_DIRECTORY = "the current directory no longer exists: it was deleted or moved; change to an existing one"
"""The message of the VALIDATION_ERROR for a process whose working directory is gone."""

_MAX_SHOWN = 200  # characters of a received value in a message


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field: its path, the received value with secrets hidden, and the allowed values."""

    path: str
    """Name of the field; parts of structured options follow after dots: `retry_policy.max_attempts`."""
    received: Any
    """The value that was passed; secrets are hidden."""
    allowed: str
    """The allowed values, in words."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "received", _redact_value(self.path, self.received))

    def __str__(self) -> str:
        received = repr(self.received)
        if len(received) > _MAX_SHOWN:
            received = received[: _MAX_SHOWN - 3] + "..."
        return f"{self.path}: got {received}; allowed: {self.allowed}"


class ValidationError(AgentMuxError):
    """Options are invalid. `fields` lists all invalid fields of the first group that has any."""

    def __init__(self, fields: Sequence[FieldError]) -> None:
        self.fields = tuple(fields)
        super().__init__("VALIDATION_ERROR", "invalid options: " + "; ".join(map(str, self.fields)))


class CapabilityError(AgentMuxError):
    """The agent, or the agent with the requested model, does not support a capability."""

    def __init__(self, agent: str, capability: str, model: str | None = None, *, hint: str = "") -> None:
        self.agent, self.capability, self.model = agent, capability, model
        subject = f"{agent} with model {model}" if model else agent
        super().__init__("CAPABILITY_ERROR", f"{subject} does not support {capability}" + (f"; {hint}" if hint else ""))


class AuthError(AgentMuxError):
    """The agent has no usable credentials; `guidance` states how to log in."""

    def __init__(self, agent: str, status: str, guidance: str) -> None:
        self.agent, self.status, self.guidance = agent, status, guidance
        super().__init__("AUTH_ERROR", f"{agent} is not authenticated ({status}); {guidance}")


class MissingExtraError(AgentMuxError, ImportError):
    """Packages that an extra of agent-mux installs are missing.

    Args:
        feature: What requires the extra, as the beginning of the message.
        extra: The name of the extra.
        code: Identifies the kind of error.
    """

    def __init__(self, feature: str, extra: str, *, code: AnyCode = "VALIDATION_ERROR") -> None:
        self.extra = extra
        super().__init__(code, f"{feature} requires the extra: pip install 'agent-mux[{extra}]'")


def _redact(text: str) -> str:
    from agent_mux.redaction import redact_text  # noqa: PLC0415  # slow; errors are rare, and every module imports this one

    return redact_text(text)


def _redact_value(path: str, value: Any) -> Any:
    from agent_mux.redaction import HIDDEN, hide_user_information, is_secret_name  # noqa: PLC0415

    if isinstance(value, str):
        is_secret = value and is_secret_name(path.rpartition(".")[2])
        return HIDDEN if is_secret else _redact(hide_user_information(value))
    if isinstance(value, list | tuple):
        return type(value)(_redact_value("", item) for item in value)
    if isinstance(value, dict):
        return {name: _redact_value(str(name), item) for name, item in value.items()}
    return value
