"""Checking option values by type, and building structured ones from plain data.

`mcp_servers=[{"name": "docs", "command": "docs-server"}]` becomes `McpServer` objects. A value of another type is
reported with its path (`mcp_servers[0].args[1]`). The types are the annotations of `RunOptions` and of the classes that
it names. Ranges, and options that are a number or one of some words, are left to `validate_options`.
"""

import os
from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal, get_origin, get_type_hints

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.checked_values import NAMES, Converter, is_hidden, members
from agent_mux.sdk.options import FUNCTIONS, RunOptions

_ALSO_PATH = frozenset({"policy"})
"""Options that a settings file may set to the path of a file."""


def typed_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return option values with structured ones built from plain data. None stays None.

    Raises:
        ValidationError: Values have a wrong type; the error names every such value by its path.
    """
    hints = _option_types()
    problems: list[FieldError] = []
    converted = {name: _convert_option(name, value, hints, problems) for name, value in values.items()}
    if problems:
        raise ValidationError(problems)
    return converted


def _convert_option(name: str, value: Any, hints: Mapping[str, Any], problems: list[FieldError]) -> Any:
    hint = hints[name]
    is_file = name in _ALSO_PATH and isinstance(value, os.PathLike)
    if value is None or name in FUNCTIONS or is_file or _is_left_to_validation(hint):
        return value
    return Converter(problems, hide=is_hidden(RunOptions, name)).convert(value, hint, name)


@cache
def _option_types() -> Mapping[str, Any]:
    return get_type_hints(RunOptions, localns=NAMES)


def _is_left_to_validation(hint: Any) -> bool:
    return all(one in (int, float, NoneType) or get_origin(one) is Literal for one in members(hint))
