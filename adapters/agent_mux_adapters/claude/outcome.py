"""How a turn ended: from a `result` line to the fact that closes the turn.

`subtype` alone is ambiguous: an API error is `success` with `is_error`, and an interruption is an error. The kind of
error is in a synthetic `assistant` line before it, which is not a message. Until 2.0.30 that line does not name the
kind: only its text, which the result repeats, shows what failed.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.events.base import CostRecord
from agent_mux.sdk import ErrorCode, facts
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.stop_reasons import answered, stop_reason_of
from agent_mux_adapters._dialects.stream_json.messages import SYNTHETIC
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text

AUTH_ERRORS = frozenset({
    "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required", "session_expired",
    "cloud_credential_error",
})  # fmt: skip
AUTH_STATUSES = frozenset({401, 403})
RATE_LIMIT_STATUS = 429
OVERLOADED_STATUS = 529
NO_SESSION = ("No conversation found", "--resume requires a valid session")
TOO_LONG = "prompt is too long"
STOPPED = "aborted"
CUT = "max_output_tokens"
"""The kind of the error for an answer that was cut again each time that the model was asked to continue."""
UNNAMED = "unknown"
"""The kind of an error that only its text describes."""
_STATUS = re.compile(r"API Error: (\d{3})\b")
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("Invalid API key", "AUTH_ERROR"),
    ("Please run /login", "AUTH_ERROR"),
    ("usage limit reached", "RATE_LIMITED"),
)
TURN_LIMIT = "error_max_turns"
BUDGET = "error_max_budget_usd"


class ApiError(msgspec.Struct, frozen=True):
    """A failed request, as a synthetic `assistant` line reports it."""

    error: str
    message: str


def api_error_of(line: Mapping[str, Any]) -> ApiError | None:
    """Return the API error that an `assistant` line reports; None when the line is a message."""
    error = text(line.get("error"))
    if not error and line.get("is_api_error_message") is not True:
        return None
    return ApiError(error or UNNAMED, _shown(line))


def is_notice(line: Mapping[str, Any]) -> bool:
    """Return whether an `assistant` line is a text of the CLI itself, and not the output of a local command."""
    return mapping(line.get("message")).get("model") == SYNTHETIC and "local_command_source" not in line


def repeated_error(notice: Mapping[str, Any], line: Mapping[str, Any]) -> ApiError | None:
    """Return the error that a text of the CLI is, if `line` is a failed result with the same text."""
    shown = _shown(notice)
    return ApiError(UNNAMED, shown) if line.get("is_error") is True and line.get("result") == shown else None


def _shown(line: Mapping[str, Any]) -> str:
    blocks = mapping(line.get("message")).get("content")
    texts = [text(mapping(block).get("text")) for block in blocks] if isinstance(blocks, list) else []
    return "\n".join(part for part in texts if part)


def is_limited(error: str, status: int | None) -> bool:
    """Return whether the provider refused the request because of a limit or overload."""
    return error in {"rate_limit", "overloaded"} or status in {RATE_LIMIT_STATUS, OVERLOADED_STATUS}


def closing_fact(
    line: Mapping[str, Any], api_error: ApiError | None, cost: CostRecord | None, *, interrupted: bool, max_turns: int
) -> facts.Fact:
    """Return the fact that closes the turn."""
    subtype, why = text(line.get("subtype")), text(line.get("terminal_reason"))
    if subtype == TURN_LIMIT:
        return facts.TurnLimitHit(max_turns or _limit_in(_errors(line)), cost)
    if why.startswith(STOPPED) or (interrupted and subtype == "error_during_execution"):
        return facts.TurnStopped(cost)
    if line.get("is_error") is True or subtype.startswith("error"):
        return _failed(line, api_error, cost)
    return answered(line.get("stop_reason"), cost, line.get("structured_output"))


def _failed(line: Mapping[str, Any], api_error: ApiError | None, cost: CostRecord | None) -> facts.Fact:
    """Return the fact that closes a turn with an error. An answer that stays cut or blocked is no crash."""
    if api_error is not None and api_error.error == CUT:
        return answered("max_tokens", cost)
    failure = _failure(line, api_error)
    if stop_reason_of(line.get("stop_reason")) == "filtered":
        failure = replace(failure, code="CONTENT_FILTERED")
    return facts.TurnFailed(failure, cost)


def _failure(line: Mapping[str, Any], api_error: ApiError | None) -> facts.Failure:
    message = text(line.get("result")) or (api_error.message if api_error else "") or _errors(line)
    message = message or f"the agent reported {text(line.get('subtype')) or 'an error'}"
    used, limit = _token_counts(message)
    return facts.Failure(_code(line, api_error, message), message, used_tokens=used, max_tokens=limit)


def _code(line: Mapping[str, Any], api_error: ApiError | None, message: str) -> ErrorCode:
    error = api_error.error if api_error else ""
    status = optional_whole(line.get("api_error_status"))
    if status is None and error == UNNAMED and (match := _STATUS.match(message)):
        status = int(match[1])
    if text(line.get("subtype")) == BUDGET:
        return "BUDGET_EXCEEDED"
    if line.get("terminal_reason") == "prompt_too_long" or TOO_LONG in message.lower():
        return "CONTEXT_EXCEEDED"
    if error in AUTH_ERRORS or status in AUTH_STATUSES:
        return "AUTH_ERROR"
    if error == "rate_limit" or status == RATE_LIMIT_STATUS:
        return "RATE_LIMITED"
    if message.startswith(NO_SESSION):
        return "SESSION_NOT_FOUND"
    by_phrase = next((code for phrase, code in _PHRASES if error == UNNAMED and phrase in message), None)
    return by_phrase or ("AGENT_CRASH" if status is not None else network_code_of(message))


def _errors(line: Mapping[str, Any]) -> str:
    errors = line.get("errors")
    return "; ".join(error for error in errors if isinstance(error, str)) if isinstance(errors, list) else ""


def _limit_in(errors: str) -> int:
    """Return the number in `Reached maximum number of turns (3)`; 0 when it is missing."""
    return _number(errors.rpartition("(")[2].partition(")")[0])


def _token_counts(message: str) -> tuple[int, int]:
    """Return the numbers in `prompt is too long: 210000 tokens > 200000 maximum`; zeros when they are missing."""
    before, found, after = message.partition(" tokens > ")
    return (_number(before.split()[-1]), _number(after.split()[0])) if found and before.split() and after.split() \
        else (0, 0)  # fmt: skip


def _number(digits: str) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0
