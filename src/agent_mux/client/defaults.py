"""What a client may say for all of its runs."""

from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import RunOptions, validate_options

SENT = (
    "approval_mode",
    "timeout",
    "inactivity_timeout",
    "stream",
    "debug",
    "event_buffer_size",
    "retry_policy",
    "hooks",
)
"""Of runs that work elsewhere: fields of `RunOptions`."""
OWN = (*SENT, "journal")
"""Of runs that work here."""


def checked_defaults(defaults: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Those that say something: all that are not None. Raises `ValidationError` for what is unknown or out of range."""
    unknown = [FieldError(name, value, ", ".join(known)) for name, value in defaults.items() if name not in known]
    if unknown:
        raise ValidationError(unknown)
    said = {name: value for name, value in defaults.items() if value is not None}
    validate_options(RunOptions(agent="-", prompt="-", **said))
    return said
