"""Tools made of typed Python functions: the signature is the schema, the docstring is the description.

Source: hooks seed, section 2.2 (FuncTool). A function that is no coroutine runs in a thread. When the run is aborted
nobody waits for that thread: a function that takes long looks at `context.is_cancelled()` now and then, and stops.
From there it reaches the coroutines of its context with `anyio.from_thread.run(context.update, text)`.
"""

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, overload

import pydantic_core
from anyio import to_thread

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.messages import Image, Text
from agent_loop.tools.docstrings import described
from agent_loop.tools.signatures import Signature
from agent_loop.tools.tool import DoneSignal, Output, Risk, ToolContext, ToolKind, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool of a function. Made by `tool` and `function_tool`."""

    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
    signature: Signature = field(repr=False)
    label: str = ""
    kind: ToolKind = "other"
    risk: Risk = "medium"
    sequential: bool = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        return self.signature.schema

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Call the function. Raises `InvalidArgumentsError`, `ToolError`, and what the function raises."""
        values = self.signature.values(arguments)
        given = partial(self._call, values)
        returned = await given(context) if _is_async(self.function) else await _in_thread(given, context)
        if inspect.isawaitable(returned):
            returned = await returned
        return _as_output(returned, self.name)

    def _call(self, values: Mapping[str, Any], context: ToolContext) -> Any:
        return self.function(**values, **dict.fromkeys(self.signature.context_parameters, context))


def function_tool(  # noqa: PLR0913  # what a tool can be, each by its name
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    label: str = "",
    kind: ToolKind = "other",
    risk: Risk = "medium",
    sequential: bool = False,
) -> FunctionTool:
    """A tool of a typed function; its name and its docstring say what is not said here.

    A parameter of type `ToolContext` gets the context and is no argument. What the function returns may be text, a
    `ToolResult`, a `DoneSignal`, blocks of content, or anything else that pydantic can write as JSON.

    Raises:
        ConfigurationError: for `*args`, `**kwargs`, parameters by position only or without a type, and for a function
            without name or description.
    """
    known_name = name or getattr(function, "__name__", "")
    words = described(getattr(function, "__doc__", None))
    known_description = description or words.description
    if not known_name or known_name == "<lambda>":
        raise ConfigurationError(f"{function!r} has no name for a tool; give it one with `name=`")
    if not known_description:
        raise ConfigurationError(f"tool {known_name!r} has no description; write a docstring or give `description=`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"the function of tool {known_name!r} is a generator; return the whole result instead")
    return FunctionTool(
        name=known_name,
        description=known_description,
        function=function,
        signature=Signature(function, known_name, words.parameters),
        label=label,
        kind=kind,
        risk=risk,
        sequential=sequential,
    )


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(**known: Any) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **known: Any
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """`@tool`, or `@tool(name=..., risk=...)`: the function below it, as a tool. Takes what `function_tool` takes."""
    if function is None:
        return partial(function_tool, **known)
    return function_tool(function, **known)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # whether its call is a coroutine, not whether it has one


async def _in_thread(call: Callable[[ToolContext], Any], context: ToolContext) -> Any:
    """Run it in a thread that learns from `is_cancelled` that nobody waits for it any more."""
    given_up = threading.Event()
    own = replace(context, is_cancelled=lambda: given_up.is_set() or context.is_cancelled())
    try:
        return await to_thread.run_sync(call, own, abandon_on_cancel=True)
    finally:
        given_up.set()


def _as_output(returned: Any, name: str) -> Output:
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
        raise ToolError(f"tool {name!r} returned something that is no JSON ({type(returned).__name__})") from error
