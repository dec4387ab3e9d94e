"""Typed functions as tools."""

import contextvars
import functools
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import anyio
import pytest
from anyio import from_thread
from pydantic import BaseModel, Field

from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError
from agent_loop.messages import Image, Text
from agent_loop.tools.function import FunctionTool, function_tool, tool
from agent_loop.tools.tool import (
    DoneSignal,
    TaskComplete,
    Tool,
    ToolContext,
    ToolResult,
    kind_of,
    risk_of,
    runs_alone,
)

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
CONTEXT = ToolContext(call_id="c1", tool_name="t")


class Colour(Enum):
    RED = "red"


class Place(BaseModel):
    city: str


@dataclass
class Size:
    width: int


def call(made: Tool, backend: str = "asyncio", context: ToolContext = CONTEXT, **arguments: Any) -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(20):
            return await made.execute(arguments, context)

    return anyio.run(bounded, backend=backend)


def test_signature_and_docstring_become_the_definition() -> None:
    @tool
    def search(query: str, limit: int = 10, mode: Literal["exact", "fuzzy"] = "exact") -> str:
        """Search for things.

        All of them.

        Args:
            query: What to
                search for.
            limit (int): At most so many.

        Returns:
            What was found.
        """
        return f"{query} {limit} {mode}"

    assert isinstance(search, Tool)
    assert (search.name, search.description) == ("search", "Search for things.\n\nAll of them.")
    assert search.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to search for."},
            "limit": {"type": "integer", "description": "At most so many.", "default": 10},
            "mode": {"type": "string", "enum": ["exact", "fuzzy"], "default": "exact"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert call(search, query="a") == "a 10 exact"


def test_options_of_the_decorator_are_taken() -> None:
    @tool(name="other", description="Words.", kind="read", risk="low", sequential=True, label="Other")
    def one(a: Annotated[int, Field(description="A number.", ge=0)]) -> str:
        return str(a)

    assert (one.name, one.description, one.label) == ("other", "Words.", "Other")
    assert (kind_of(one), risk_of(one), runs_alone(one)) == ("read", "low", True)
    assert one.parameters["properties"]["a"] == {"type": "integer", "description": "A number.", "minimum": 0}


def test_models_dataclasses_and_enums_are_parameters() -> None:
    def rich(place: Place, size: Size, colour: Colour, title: str | None = None) -> str:
        """Take rich values."""
        assert isinstance(place, Place)
        assert isinstance(size, Size)
        return f"{place.city} {size.width} {colour.name} {title}"

    made = function_tool(rich)
    assert call(made, place={"city": "Bern"}, size={"width": 2}, colour="red") == "Bern 2 RED None"
    assert "title" in made.parameters["properties"]
    assert "title" not in made.parameters["properties"]["title"]


def test_parameters_may_have_any_name() -> None:
    def odd(json: str, copy: int, model_config: bool, _private: str = "p") -> str:
        """Have odd names."""
        return f"{json} {copy} {model_config} {_private}"

    made = function_tool(odd)
    assert list(made.parameters["properties"]) == ["json", "copy", "model_config", "_private"]
    assert call(made, json="j", copy=1, model_config=True) == "j 1 True p"


def test_context_is_injected_and_not_an_argument() -> None:
    @tool
    async def who(context: ToolContext, polite: bool = False) -> str:
        """Tell."""
        return f"{context.call_id} {polite}"

    assert list(who.parameters["properties"]) == ["polite"]
    assert call(who) == "c1 False"
    with pytest.raises(InvalidArgumentsError, match="context"):
        anyio.run(who.execute, {"context": "mine"}, CONTEXT)


def test_defaults_that_are_not_json_are_left_out_of_the_schema() -> None:
    marker = object()

    @tool
    def odd(a: Any = marker) -> bool:
        """Have an odd default."""
        return a is marker

    assert call(odd) == "true"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(*args: int):\n 'd'", r"takes \*args"),
        ("def f(**more: int):\n 'd'", r"takes \*\*more"),
        ("def f(a: int, /):\n 'd'", "takes a by position only"),
        ("def f(a):\n 'd'", "parameter 'a' .* has no type"),
        ("def f(a: 'Nowhere'):\n 'd'", "cannot be read"),
        ("def f(a: int): ...", "has no description"),
        ("f = lambda: 1", "no name"),
        ("def f():\n 'd'\n yield", "generator"),
        ("import threading\ndef f(a: threading.Lock):\n 'd'", "'f'"),
        ("import typing\ndef f(a: typing.Callable[[], int]):\n 'd'", "no JSON"),
    ],
)
def test_functions_that_models_cannot_call_are_rejected(source: str, message: str) -> None:
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102  # our own
    with pytest.raises(ConfigurationError, match=message):
        function_tool(names["f"])


def test_an_async_generator_is_refused() -> None:
    async def some() -> AsyncIterator[str]:
        """Give some."""
        yield "a"

    with pytest.raises(ConfigurationError, match="generator"):
        function_tool(some)


def test_wrong_arguments_are_one_readable_sentence() -> None:
    @tool
    def add(a: int, place: Place) -> int:
        """Add."""
        return a

    with pytest.raises(InvalidArgumentsError) as error:
        call(add, a="x", place={}, b=1)
    assert str(error.value) == (
        "a: input should be a valid integer, unable to parse string as an integer; place.city: field required; "
        "b: extra inputs are not permitted"
    )


def test_a_validation_error_of_the_function_itself_is_not_about_the_arguments() -> None:
    @tool
    def broken() -> Place:
        """Break."""
        return Place.model_validate({})

    with pytest.raises(ValueError, match="city") as error:
        call(broken)
    assert not isinstance(error.value, ToolError)


@pytest.mark.parametrize(
    ("returned", "output"),
    [
        ("text", "text"), (None, "null"), (5, "5"), ({"a": [1]}, '{"a":[1]}'), (Place(city="Bern"), '{"city":"Bern"}'),
        (Size(2), '{"width":2}'), (Colour.RED, '"red"'), (ToolResult((Text("a"),)), ToolResult((Text("a"),))),
        (DoneSignal("end"), DoneSignal("end")), (Image("QQ==", "image/png"), ToolResult((Image("QQ==", "image/png"),))),
        ([Text("a")], ToolResult((Text("a"),))), ([], "[]"),
    ],
)  # fmt: skip
def test_returned_values_become_outputs(returned: Any, output: Any) -> None:
    assert call(function_tool(lambda: returned, name="give", description="Give.")) == output


def test_value_that_is_not_json_is_a_tool_error() -> None:
    made = function_tool(object, name="give", description="Give.")
    with pytest.raises(ToolError, match=r"'give' returned a value that cannot be encoded as JSON \(object\)"):
        call(made)


def test_errors_and_the_end_of_the_run_pass_through() -> None:
    def end() -> None:
        raise TaskComplete("over")

    def fail() -> None:
        raise ToolError("no")

    with pytest.raises(TaskComplete):
        call(function_tool(end, description="End."))
    with pytest.raises(ToolError, match="no"):
        call(function_tool(fail, description="Fail."))


def test_callable_objects_methods_and_partials_are_functions_too() -> None:
    class Greeter:
        """Greets."""

        async def __call__(self, name: str) -> str:
            return f"hello {name}"

        def shout(self, name: str) -> str:
            """Shout."""
            return name.upper()

    assert call(function_tool(Greeter(), name="greet"), name="a") == "hello a"
    assert call(function_tool(Greeter().shout), name="a") == "A"
    assert call(function_tool(functools.partial(Greeter().shout), name="s", description="S."), name="b") == "B"


@BACKENDS
def test_sync_functions_run_in_a_thread_and_reach_the_loop(backend: str) -> None:
    updates: list[str] = []

    async def update(text: str) -> None:
        updates.append(text)

    @tool
    def work(context: ToolContext) -> bool:
        """Work."""
        from_thread.run(context.update, "half")
        return threading.current_thread() is threading.main_thread()

    assert call(work, backend, ToolContext(call_id="1", tool_name="work", update=update)) == "false"
    assert updates == ["half"]


@BACKENDS
def test_cancelled_sync_function_can_raise_by_check_cancelled(backend: str) -> None:
    started, stopped = threading.Event(), threading.Event()

    @tool
    def endless() -> None:
        """Work until cancelled."""
        started.set()
        try:
            while True:
                from_thread.check_cancelled()
        finally:
            stopped.set()

    async def run(made: FunctionTool) -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(made.execute, {}, CONTEXT)
                await anyio.to_thread.run_sync(started.wait, 20)
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(stopped.wait, 20)

    anyio.run(run, endless, backend=backend)
    assert stopped.is_set()


@BACKENDS
def test_sync_function_can_run_an_event_loop_of_its_own(backend: str) -> None:
    async def answer() -> str:
        return "42"

    @tool
    def work() -> str:
        """Work."""
        return anyio.run(answer)

    assert call(work, backend) == "42"


@BACKENDS
def test_context_variables_and_exceptions_pass_the_thread(backend: str) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    @tool
    def work() -> str:
        """Work."""
        raise ToolError(variable.get())

    async def run() -> None:
        variable.set("set")
        with anyio.fail_after(20), pytest.raises(ToolError, match=r"^set$"):
            await work.execute({}, CONTEXT)

    anyio.run(run, backend=backend)


@pytest.mark.slow
@BACKENDS
def test_function_that_never_returns_does_not_keep_the_program_from_ending(backend: str) -> None:
    program = """
import anyio, sys, threading
from agent_loop import Agent, ScriptedProvider, tool
from agent_loop.providers.script import call

@tool
def stuck() -> None:
    'Never return.'
    threading.Event().wait()

async def main() -> None:
    with anyio.move_on_after(0.5) as limit:
        await Agent(ScriptedProvider([call("stuck")]), tools=[stuck]).run("work")
    print("cancelled" if limit.cancelled_caught else "returned")

anyio.run(main, backend=sys.argv[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, backend], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")


@BACKENDS
def test_is_cancelled_becomes_true_in_a_cancelled_sync_function(backend: str) -> None:
    started, stopped = threading.Event(), threading.Event()

    @tool
    def endless(context: ToolContext) -> None:
        """Work until cancelled."""
        started.set()
        while not context.is_cancelled():
            pass
        stopped.set()

    async def run(made: FunctionTool) -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(made.execute, {}, CONTEXT)
                await anyio.to_thread.run_sync(started.wait, 20)
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(stopped.wait, 20)

    anyio.run(run, endless, backend=backend)
    assert stopped.is_set()
