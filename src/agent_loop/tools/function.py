"""Tools made of typed Python functions: the signature is the schema, the docstring is the description.

A function that is not a coroutine function runs in a worker thread. Neither an aborted run nor the end of the program
waits for that thread, so a function that takes long should check `context.is_cancelled()` regularly and return. In the
thread, it calls the coroutine functions of its context with `anyio.from_thread.run(context.update, text)`.
"""

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, overload

import pydantic_core

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.messages import Image, Text
from agent_loop.tools.signatures import Signature, parse_docstring
from agent_loop.tools.threads import call_in_thread
from agent_loop.tools.tool import DoneSignal, Output, Risk, ToolContext, ToolKind, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool that calls a function; create one with `tool` or `function_tool`."""

    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
    signature: Signature = field(repr=False)
    label: str = ""
    kind: ToolKind = "other"
    risk: Risk = "medium"
    read_only: bool | None = None
    """Whether calls change nothing; None: only if the kind is "read" or "ask"."""
    sequential: bool = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        return self.signature.schema

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Call the function. Raises `InvalidArgumentsError`, `ToolError`, and what the function raises."""
        values = self.signature.values(arguments)
        call = partial(self._call, values)
        returned = await call(context) if _is_async(self.function) else await _in_thread(call, context)
        if inspect.isawaitable(returned):
            returned = await returned
        return _to_output(returned, self.name)

    def _call(self, values: Mapping[str, Any], context: ToolContext) -> Any:
        return self.function(**values, **dict.fromkeys(self.signature.context_parameters, context))


def function_tool(  # noqa: PLR0913  # one parameter for each attribute of a tool
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    label: str = "",
    kind: ToolKind = "other",
    risk: Risk = "medium",
    read_only: bool | None = None,
    sequential: bool = False,
) -> FunctionTool:
    """Return a tool that calls a typed function. Name and description default to the function's name and docstring.

    A parameter of type `ToolContext` receives the context and is not an argument of the tool. The function may return
    text, a `ToolResult`, a `DoneSignal`, content blocks, or any value that pydantic can serialize as JSON. Calls of one
    answer run concurrently only with `read_only=True` (or a kind that only reads), and without `sequential`.

    Raises:
        ConfigurationError: The function has `*args`, `**kwargs`, positional-only parameters or parameters without a
            type, is a generator, or has no name or description.
    """
    known_name = name or getattr(function, "__name__", "")
    documented = parse_docstring(getattr(function, "__doc__", None))
    known_description = description or documented.description
    if not known_name or known_name == "<lambda>":
        raise ConfigurationError(f"{function!r} has no name for a tool; pass `name=`")
    if not known_description:
        raise ConfigurationError(f"tool {known_name!r} has no description; write a docstring or pass `description=`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"the function of tool {known_name!r} is a generator; return the whole result instead")
    return FunctionTool(
        name=known_name,
        description=known_description,
        function=function,
        signature=Signature(function, known_name, documented.parameters),
        label=label,
        kind=kind,
        risk=risk,
        read_only=read_only,
        sequential=sequential,
    )


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(**known: Any) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **known: Any
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Turn the decorated function into a tool: `@tool` or `@tool(name=..., risk=...)`, as `function_tool`."""
    if function is None:
        return partial(function_tool, **known)
    return function_tool(function, **known)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # tests for an async __call__, not for any __call__


async def _in_thread(call: Callable[[ToolContext], Any], context: ToolContext) -> Any:
    """Run `call` in a worker thread; `is_cancelled` of its context becomes true once the caller stops waiting."""
    abandoned = threading.Event()
    thread_context = replace(context, is_cancelled=lambda: abandoned.is_set() or context.is_cancelled())
    try:
        return await call_in_thread(call, thread_context)
    finally:
        abandoned.set()


def _to_output(returned: Any, name: str) -> Output:
    match returned:
        case str() | ToolResult() | DoneSignal():
            return returned
        case Text() | Image():
            return ToolResult((returned,))
        case list() | tuple() if returned and all(isinstance(block, Text | Image) for block in returned):
            return ToolResult(tuple(returned))
    try:
        return pydantic_core.to_json(returned).decode()
    except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
        raise ToolError(
            f"tool {name!r} returned a value that cannot be encoded as JSON ({type(returned).__name__})"
        ) from error
