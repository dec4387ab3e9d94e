"""Every error this package raises.

AgentMuxError(code, message, recoverable)
 +-- ValidationError(fields)                   bad options; nothing was started
 +-- CapabilityError(agent, capability, model) the agent cannot do what was asked
 +-- AuthError(agent, status, guidance)        no usable credentials, known without asking the network

Subclasses exist only where a caller would branch; everything else is told apart by `code`.
Errors store data; `str()` composes the sentence. What they say has no secrets in it. Source: run API, section 4.
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
    "CONTEXT_EXCEEDED",
    "ABORTED",
    "RUN_NOT_ACTIVE",
    "STDIN_NOT_AVAILABLE",
    "NO_PENDING_INTERACTION",
    "INTERACTION_NOT_FOUND",
    "INVALID_STATE_TRANSITION",
    "PTY_NOT_AVAILABLE",
    "BUDGET_EXCEEDED",
    "INTERNAL",
]
"""What can go wrong with a run, or with what agents keep. Source: run API, section 4."""
ServiceCode = Literal["LIMIT_EXCEEDED", "RUN_NOT_FOUND", "NOT_FOUND", "UNAUTHENTICATED", "FORBIDDEN", "UNAVAILABLE"]
"""What can go wrong besides, with queues and between a service and its clients; no event ever says it."""
AnyCode = ErrorCode | ServiceCode
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)

SERVICE_CODES: tuple[ServiceCode, ...] = get_args(ServiceCode)

RECOVERABLE: frozenset[AnyCode] = frozenset(
    {
        "CONFIG_LOCK_ERROR",
        "RATE_LIMITED",
        "LIMIT_EXCEEDED",
        "UNAVAILABLE",
        "NO_PENDING_INTERACTION",
        "INTERACTION_NOT_FOUND",
        "TIMEOUT",
    }
)


class AgentMuxError(Exception):
    """What went wrong, by `code`; `message` says what happened, to what, and what to do next."""

    def __init__(self, code: AnyCode, message: str, *, recoverable: bool | None = None) -> None:
        message = _clean(message)
        super().__init__(code, message)
        self.code: AnyCode = code
        self.message = message
        self.recoverable = code in RECOVERABLE if recoverable is None else recoverable

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field: where, what was received (without its secrets), what is allowed."""

    path: str
    received: Any
    allowed: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "received", _clean_value(self.path, self.received))

    def __str__(self) -> str:
        shown = repr(self.received)
        return f"{self.path}: got {shown if len(shown) <= 200 else shown[:197] + '...'}; allowed: {self.allowed}"


class ValidationError(AgentMuxError):
    """Options that cannot work. `fields` lists every bad field of the first failing group."""

    def __init__(self, fields: Sequence[FieldError]) -> None:
        self.fields = tuple(fields)
        super().__init__("VALIDATION_ERROR", "invalid options: " + "; ".join(map(str, self.fields)))


class CapabilityError(AgentMuxError):
    """The agent (or this model of it) cannot do what was asked."""

    def __init__(self, agent: str, capability: str, model: str | None = None, *, hint: str = "") -> None:
        self.agent, self.capability, self.model = agent, capability, model
        who = f"{agent} with model {model}" if model else agent
        super().__init__("CAPABILITY_ERROR", f"{who} does not support {capability}" + (f"; {hint}" if hint else ""))


class AuthError(AgentMuxError):
    """The agent has no usable credentials."""

    def __init__(self, agent: str, status: str, guidance: str) -> None:
        self.agent, self.status, self.guidance = agent, status, guidance
        super().__init__("AUTH_ERROR", f"{agent} is not authenticated ({status}); {guidance}")


def _clean(text: str) -> str:
    from agent_mux.redaction import redact_text  # noqa: PLC0415  # errors are rare, and this module is everywhere

    return redact_text(text)


def _clean_value(path: str, value: Any) -> Any:
    from agent_mux.redaction import HIDDEN, is_secret_name  # noqa: PLC0415

    if isinstance(value, str):
        return HIDDEN if value and is_secret_name(path.rpartition(".")[2]) else _clean(value)
    if isinstance(value, list | tuple):
        return type(value)(_clean_value("", item) for item in value)
    if isinstance(value, dict):
        return {name: _clean_value(str(name), item) for name, item in value.items()}
    return value
