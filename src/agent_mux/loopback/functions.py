"""Python functions as tools of a model: signature to JSON schema, docstring to description, and bounded calls.

A function receives its arguments validated and converted to the annotated types. Whatever goes wrong in a call becomes
a text for the agent, because it can correct its call and the caller's program is not at fault.
"""

import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import pydantic
from anyio import CapacityLimiter
from pydantic_core import to_json

from agent_mux._util.logs import LOGGER
from agent_mux.errors import FieldError, ValidationError
from agent_mux.loopback.calls import FunctionFailed, call_function
from agent_mux.sdk.in_process import Tool, as_tool

MAX_ERRORS = 5
"""Invalid arguments that one answer names."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the agent receives for a call."""

    text: str
    is_error: bool = False


class ToolFunction:
    """One function with its schema."""

    def __init__(self, tool: Tool) -> None:
        """Derive the schema. Raises `TypeError` if the signature cannot be called with named JSON values."""
        self.name = tool.tool_name
        self._function, self._timeout = tool.function, tool.timeout
        summary, parameters = parse_docstring(inspect.getdoc(tool.function) or "")
        self.description = tool.description if tool.description is not None else summary
        self._names, self._model = _model_of(tool.function)
        self.schema = _schema_of(self._model, parameters)

    async def call(self, arguments: Mapping[str, Any], threads: CapacityLimiter) -> ToolResult:
        """Call the function with JSON values. Errors and exceeded time are results."""
        try:
            values = self._validate(arguments)
        except pydantic.ValidationError as error:
            return ToolResult(f"invalid arguments for {self.name}: {_sentence(error)}", is_error=True)
        try:
            returned = await call_function(partial(self._function, **values), threads, self._timeout)
        except FunctionFailed as failure:
            if failure.raised is None:
                return ToolResult(f"{self.name} did not finish within {self._timeout:g} s", is_error=True)
            kind = type(failure.raised).__name__
            logging.getLogger(LOGGER).info("the tool %s raised %s", self.name, kind, exc_info=failure.raised)
            return ToolResult(str(failure), is_error=True)
        return self._result_of(returned)

    def _validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        model = self._model.model_validate(arguments)
        return {name: getattr(model, field) for field, name in self._names.items() if field in model.model_fields_set}

    def _result_of(self, returned: Any) -> ToolResult:
        if isinstance(returned, str):
            return ToolResult(returned)
        try:
            return ToolResult(to_json(returned).decode())
        except (ValueError, TypeError) as error:
            message = f"{self.name} returned {type(returned).__name__}, which has no JSON form: {error}"
            return ToolResult(message, is_error=True)


def tool_functions(tools: Sequence[Tool | Callable[..., Any]]) -> tuple[ToolFunction, ...]:
    """Return the functions with their schemas. Raises `ValidationError` for functions that cannot be tools."""
    found, problems = list[ToolFunction](), list[FieldError]()
    for index, value in enumerate(tools):
        tool = as_tool(value)
        try:
            found.append(ToolFunction(tool))
        except (TypeError, NameError, pydantic.errors.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError,
                pydantic.errors.PydanticInvalidForJsonSchema) as error:  # fmt: skip
            reason = str(error).partition("\n")[0]
            allowed = f"a function whose parameters are named and have a JSON form ({reason})"
            problems.append(FieldError(f"tools[{index}]", tool.tool_name or type(tool.function).__name__, allowed))
    if problems:
        raise ValidationError(problems)
    return tuple(found)


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description and the descriptions of parameters of a docstring with Google's sections."""
    lines = text.splitlines()
    sections = [number for number, line in enumerate(lines) if _SECTION.fullmatch(line)]
    summary = "\n".join(lines[: sections[0]] if sections else lines).strip()
    parameters: dict[str, str] = {}
    start = next((number for number in sections if lines[number].rstrip() in {"Args:", "Arguments:"}), None)
    name = ""
    for line in lines[start + 1 :] if start is not None else ():
        if line and not line[0].isspace():
            break
        entry = _PARAMETER.fullmatch(line)
        if entry is not None:
            name = entry[1]
            parameters[name] = entry[2].strip()
        elif name and line.strip():
            parameters[name] = f"{parameters[name]} {line.strip()}".strip()
    return summary, parameters


_SECTION = re.compile(r"(Args|Arguments|Returns|Raises|Yields|Example|Examples|Note|Notes|Attributes):\s*")
_PARAMETER = re.compile(r" {1,4}\*{0,2}(\w+)(?: *\([^)]*\))?:(.*)")


def _model_of(function: Callable[..., Any]) -> tuple[dict[str, str], type[pydantic.BaseModel]]:
    """Return the parameters as a pydantic model. Its fields are numbered, so that any name is allowed."""
    target = function.func if isinstance(function, partial) else function
    is_plain = inspect.isroutine(target) or inspect.isclass(target)
    hints = get_type_hints(target if is_plain else type(target).__call__, include_extras=True)
    names: dict[str, str] = {}
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{parameter} cannot be passed by name")
        field = f"parameter_{len(names)}"
        names[field] = name
        default = ... if parameter.default is parameter.empty else parameter.default
        definitions[field] = (hints.get(name, Any), pydantic.Field(default, alias=name))
    config = pydantic.ConfigDict(extra="forbid", protected_namespaces=())
    return names, pydantic.create_model("Arguments", __config__=config, **definitions)


def _schema_of(model: type[pydantic.BaseModel], parameters: Mapping[str, str]) -> dict[str, Any]:
    schema = model.model_json_schema()
    for name in ("title", "additionalProperties"):  # some providers reject the latter
        schema.pop(name, None)
    properties = schema.setdefault("properties", {})
    for name, value in properties.items():
        value.pop("title", None)
        if name in parameters:
            value.setdefault("description", parameters[name])
    return schema


def _sentence(error: pydantic.ValidationError) -> str:
    rows = error.errors(include_url=False, include_input=False)
    shown = "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows[:MAX_ERRORS])
    return shown if len(rows) <= MAX_ERRORS else f"{shown}; and {len(rows) - MAX_ERRORS} more"
