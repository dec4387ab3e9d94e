"""The parameters of a typed function as JSON Schema, and arguments as the values that it takes."""

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agent_loop.errors import ConfigurationError, InvalidArgumentsError
from agent_loop.tools.tool import ToolContext

MOST_PROBLEMS = 5
"""Of one call that an error tells."""

_UNNAMED = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{}",
    inspect.Parameter.VAR_KEYWORD: "takes **{}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {} by position only",
}


class Signature:
    """What a function takes. Raises `ConfigurationError` for a function that no model could call."""

    def __init__(self, function: Callable[..., Any], name: str, words: Mapping[str, str]) -> None:
        """`words`: parameter -> its description."""
        hints = _hints(function, name)
        parameters = inspect.signature(function).parameters.values()
        for parameter in parameters:
            _check(parameter, hints, name)
        self.context_parameters = tuple(each.name for each in parameters if hints[each.name] is ToolContext)
        """Where the function wants its `ToolContext`."""
        taken = [each for each in parameters if each.name not in self.context_parameters]
        self._fields = {f"argument_{number}": each.name for number, each in enumerate(taken)}
        self._model = _model_of(name, taken, hints, words)
        self.schema = _schema_of(self._model, name)
        """JSON Schema of the arguments, an object."""

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as the function's keyword arguments; those left out stay out, so that its own defaults hold.

        Raises:
            InvalidArgumentsError: naming what does not fit.
        """
        try:
            model = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidArgumentsError(_sentence(error)) from None
        return {self._fields[name]: getattr(model, name) for name in self._fields if name in model.model_fields_set}


class _Quiet(GenerateJsonSchema):
    """A default that is no JSON is just not told."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # pydantic declares it so


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigurationError(f"the types of tool {name!r} cannot be read: {error}") from None


def _check(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> None:
    if parameter.kind in _UNNAMED:
        said = _UNNAMED[parameter.kind].format(parameter.name)
        raise ConfigurationError(f"the function of tool {name!r} {said}; a model gives arguments by name")
    if parameter.name not in hints:
        raise ConfigurationError(f"parameter {parameter.name!r} of tool {name!r} has no type; annotate it")


def _model_of(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], words: Mapping[str, str]
) -> type[BaseModel]:
    """A model of the arguments. Its fields have names of ours: a parameter may be called like a method of models."""
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        known: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in words:
            known["description"] = words[parameter.name]
        if parameter.default is not inspect.Parameter.empty:
            known["default"] = parameter.default
        fields[f"argument_{number}"] = (hints[parameter.name], Field(**known))
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"a model cannot write the arguments of tool {name!r}: {_first_line(error)}") from None


def _schema_of(model: type[BaseModel], name: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(schema_generator=_Quiet)
    except PydanticUserError as error:
        raise ConfigurationError(f"the arguments of tool {name!r} are no JSON: {_first_line(error)}") from None
    plain: dict[str, Any] = _untitled(schema)
    plain.setdefault("properties", {})
    return plain


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic makes of names: the model has the names."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    data = {"default", "const", "enum", "examples"}
    return {
        key: value if key in data and not isinstance(value, dict) else _untitled(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _sentence(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{_place(detail['loc'])}: {_uncapitalized(detail['msg'])}" for detail in details[:MOST_PROBLEMS]]
    rest = len(details) - len(told)
    return "; ".join(told) + (f"; and {rest} more" if rest else "")


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "arguments"


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
