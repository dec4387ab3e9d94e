"""Between `RunOptions` and what was said of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.options import RunOptions
from agent_mux.policy import read_policy
from agent_mux.preferences.precedence import said_of
from agent_mux.run.retry import RetryPolicy


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
    policy = said.get("retry_policy")
    if policy is None or isinstance(policy, Mapping):
        return said
    if not isinstance(policy, RetryPolicy):
        raise ValidationError([FieldError("retry_policy", policy, "a RetryPolicy")])
    return {**said, "retry_policy": said_of(policy)}
