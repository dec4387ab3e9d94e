"""Signature and docstring of a typed function: JSON Schema of its parameters, descriptions, argument values.

Docstrings are read in Google's style.
"""

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agent_loop.errors import ConfigurationError, InvalidArgumentsError
from agent_loop.tools.tool import ToolContext

MOST_PROBLEMS = 5
"""The most invalid arguments that one error message lists."""

_UNSUPPORTED = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{}",
    inspect.Parameter.VAR_KEYWORD: "takes **{}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {} by position only",
}
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Example|Examples|Note|Notes):\s*")
_PARAMETER_SECTIONS = frozenset({"Args", "Arguments", "Parameters"})
_PARAMETER = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """The descriptions in the docstring of a function."""

    description: str = ""
    """The text before the first section."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The description of each parameter by name."""


def parse_docstring(docstring: str | None) -> FunctionDescription:
    """Parse a docstring; the result is empty for a function without one."""
    sections: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        heading = _SECTION.fullmatch(line)
        if heading:
            current = heading[1]
        sections.setdefault(current, []).extend([] if heading else [line])
    lines = [line for name in _PARAMETER_SECTIONS & sections.keys() for line in sections[name]]
    return FunctionDescription("\n".join(sections[""]).strip(), _parse_parameters(lines))


def _parse_parameters(lines: list[str]) -> dict[str, str]:
    """Parse lines such as `name: text` and `name (type): text`; lines with a deeper indent continue the text."""
    filled = [line for line in lines if line.strip()]
    indent = min((_indent(line) for line in filled), default=0)
    found: dict[str, str] = {}
    name = ""
    for line in filled:
        start = _PARAMETER.fullmatch(line.strip()) if _indent(line) == indent else None
        if start:
            name = start[1]
            found[name] = start[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class Signature:
    """The parameters of a function. Raises `ConfigurationError` for a function that a model cannot call."""

    def __init__(self, function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> None:
        """`descriptions` maps parameters to their descriptions."""
        hints = _type_hints(function, name)
        parameters = inspect.signature(function).parameters.values()
        for parameter in parameters:
            _check_parameter(parameter, hints, name)
        self.context_parameters = tuple(each.name for each in parameters if _is_context(hints[each.name]))
        """The names of the parameters that receive the `ToolContext`."""
        taken = [each for each in parameters if each.name not in self.context_parameters]
        self._fields = {f"argument_{number}": each.name for number, each in enumerate(taken)}
        self._model = _model_of(name, taken, hints, descriptions)
        self.schema = _schema_of(self._model, name)
        """The JSON Schema of the arguments, of type object."""

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return validated keyword arguments. Arguments that are missing stay missing, so that the defaults apply.

        Raises:
            InvalidArgumentsError: The message names the invalid arguments.
        """
        try:
            model = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidArgumentsError(_message_of(error)) from None
        return {self._fields[name]: getattr(model, name) for name in self._fields if name in model.model_fields_set}


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or typing.get_origin(hint) is ToolContext


class _QuietSchemaGenerator(GenerateJsonSchema):
    """A schema generator that leaves out defaults which are not JSON, without a warning."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic declares it so


def _type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigurationError(f"the types of tool {name!r} cannot be read: {error}") from None


def _check_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> None:
    if parameter.kind in _UNSUPPORTED:
        reason = _UNSUPPORTED[parameter.kind].format(parameter.name)
        raise ConfigurationError(f"the function of tool {name!r} {reason}; models pass arguments by name")
    if parameter.name not in hints:
        raise ConfigurationError(f"parameter {parameter.name!r} of tool {name!r} has no type; annotate it")


def _model_of(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], descriptions: Mapping[str, str]
) -> type[BaseModel]:
    """Return a pydantic model of the arguments. Parameters are aliases, as their names may clash with model methods."""
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        known: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in descriptions:
            known["description"] = descriptions[parameter.name]
        if parameter.default is not inspect.Parameter.empty:
            known["default"] = parameter.default
        fields[f"argument_{number}"] = (hints[parameter.name], Field(**known))
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"the parameters of tool {name!r} are not supported: {_first_line(error)}") from None


def _schema_of(model: type[BaseModel], name: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(schema_generator=_QuietSchemaGenerator)
    except PydanticUserError as error:
        raise ConfigurationError(f"the parameters of tool {name!r} have no JSON Schema: {_first_line(error)}") from None
    plain: dict[str, Any] = _without_titles(schema)
    plain.setdefault("properties", {})
    return plain


def _without_titles(schema: Any) -> Any:
    """Return the schema without the titles that pydantic derives from names, which repeat the names."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    data = {"default", "const", "enum", "examples"}
    return {
        key: value if key in data and not isinstance(value, dict) else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _message_of(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [f"{_join_path(detail['loc'])}: {_uncapitalized(detail['msg'])}" for detail in details[:MOST_PROBLEMS]]
    rest = len(details) - len(problems)
    return "; ".join(problems) + (f"; and {rest} more" if rest else "")


def _join_path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "arguments"


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
