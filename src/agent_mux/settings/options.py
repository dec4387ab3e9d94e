"""Between `RunOptions` and what was said of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import RetryPolicy, RunOptions
from agent_mux.sdk.policy import read_policy
from agent_mux.settings.precedence import MERGED, said_of

_POLICY = tuple(RetryPolicy.__dataclass_fields__)


def said_by(options: RunOptions) -> dict[str, Any]:
    """What options that are given whole say: the fields that are not as they are by default, nor an empty agent."""
    return _with_parts({name: value for name, value in said_of(options).items() if name != "agent" or value})


def said_in(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What fields that are given one by one say: all that are not None. Raises `ValidationError` for an unknown one."""
    known = RunOptions.__dataclass_fields__
    unknown = [FieldError(name, value, "a field of RunOptions") for name, value in fields.items() if name not in known]
    if unknown:
        raise ValidationError(unknown)
    return _with_parts({name: value for name, value in fields.items() if value is not None})


def options_of(said: Mapping[str, Any]) -> RunOptions:
    """The options that say this. Raises CONFIG_ERROR for a policy that cannot be read."""
    made = dict(said)
    if "retry_policy" in made:
        made["retry_policy"] = RetryPolicy(**made["retry_policy"])
    if isinstance(made.get("policy"), Path):  # files name it; it may have changed since they were read
        made["policy"] = read_policy(made["policy"])
    return RunOptions(**{"agent": "", **made})


def _with_parts(said: dict[str, Any]) -> dict[str, Any]:
    """Fields of which parts can be said, as mappings. Raises `ValidationError` for what is none."""
    parts = {name: _parts(name, said[name]) for name in MERGED if name in said}
    return {**said, **parts}


def _parts(name: str, value: Any) -> Mapping[str, Any]:
    if name != "retry_policy":
        if isinstance(value, Mapping):
            return value
        raise ValidationError([FieldError(name, HIDDEN, "a mapping of names to texts")])
    if isinstance(value, RetryPolicy):
        return said_of(value)
    if isinstance(value, Mapping) and set(value) <= set(_POLICY):
        return value
    raise ValidationError([FieldError(name, value, f"a RetryPolicy, or some of {', '.join(_POLICY)}")])
