"""Python functions as tools: schemas from signatures, descriptions from docstrings, and calls that never raise."""

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import pytest
from anyio import CapacityLimiter
from pydantic import Field

from agent_mux import Tool, ValidationError
from agent_mux.loopback.functions import ToolFunction, ToolResult, parse_docstring, tool_functions
from agent_mux.sdk.in_process import as_tool
from agent_mux.sdk.options import McpServer, RunOptions, validate_options

pytestmark = pytest.mark.anyio


class Unit(Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclass
class Place:
    name: str
    height: float = 0.0


def forecast(place: Place, days: Annotated[int, Field(ge=1, le=7)] = 1, unit: Unit = Unit.CELSIUS) -> str:
    """Return the forecast for a place.

    It is never wrong.

    Args:
        place: Where.
        days (int): How many days,
            from today.

    Returns:
        The forecast.
    """
    return f"{place.name}/{place.height:g}/{days}/{unit.value}"


def function(value: Any) -> ToolFunction:
    return ToolFunction(as_tool(value))


async def call(value: Any, **arguments: Any) -> ToolResult:
    with anyio.fail_after(20):
        return await function(value).call(arguments, CapacityLimiter(4))


def test_signature_and_docstring_become_schema_and_description() -> None:
    tool = function(forecast)
    assert (tool.name, tool.description) == ("forecast", "Return the forecast for a place.\n\nIt is never wrong.")
    properties = tool.schema["properties"]
    assert tool.schema["required"] == ["place"]
    assert properties["days"] == {
        "default": 1, "maximum": 7, "minimum": 1, "type": "integer", "description": "How many days, from today.",
    }  # fmt: skip
    assert properties["place"]["description"] == "Where."
    assert tool.schema["$defs"]["Place"]["required"] == ["name"]


async def test_arguments_are_converted_to_the_annotated_types() -> None:
    result = await call(forecast, place={"name": "Oslo", "height": 3}, unit="kelvin")
    assert result == ToolResult("Oslo/3/1/kelvin")


async def test_names_that_models_of_pydantic_reserve_are_allowed() -> None:
    def search(schema: str, copy: bool = False, _hidden: int = 1, model_config: str = "") -> list[Any]:
        return [schema, copy, _hidden, model_config]

    assert (await call(search, schema="x", copy=True, _hidden=2, model_config="y")).text == '["x",true,2,"y"]'


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "place: Field required"),
        ({"place": {"name": "x"}, "days": 9}, "days: Input should be less than or equal to 7"),
        ({"place": {"name": "x"}, "town": 1}, "town: Extra inputs are not permitted"),
        ({"place": "Oslo"}, "place: "),
    ],
)
async def test_invalid_arguments_are_an_error_that_names_them(arguments: dict[str, Any], named: str) -> None:
    result = await call(forecast, **arguments)
    assert result.is_error
    assert named in result.text


async def test_exception_becomes_an_error_with_its_type_and_message() -> None:
    def fail(code: int) -> None:
        raise RuntimeError(f"code {code}")

    assert await call(fail, code=7) == ToolResult("RuntimeError: code 7", is_error=True)


async def test_exception_that_would_end_the_program_is_an_error_of_the_call() -> None:
    def leave() -> None:
        sys.exit("no such table")

    async def leave_later() -> None:
        sys.exit("no such table")

    for function in (leave, leave_later):
        assert await call(function) == ToolResult("SystemExit: no such table", is_error=True)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_function_that_cancels_itself_is_an_error_of_the_call() -> None:
    async def wait_for_cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    assert await call(wait_for_cancelled) == ToolResult("CancelledError: ", is_error=True)


async def test_time_limit_of_the_function_itself_is_reported_as_its_exception() -> None:
    async def query() -> None:
        raise TimeoutError("the database did not answer")

    assert await call(query) == ToolResult("TimeoutError: the database did not answer", is_error=True)


@pytest.mark.slow
async def test_function_can_run_an_event_loop_of_its_own() -> None:
    async def answer() -> str:
        return "42"

    assert (await call(Tool(lambda: anyio.run(answer), name="ask"))).text == "42"


def test_function_that_never_returns_does_not_keep_the_program_from_ending() -> None:
    program = """
import anyio, threading
from agent_mux import Tool
from agent_mux.loopback.functions import ToolFunction

def wait():
    threading.Event().wait()

async def main():
    result = await ToolFunction(Tool(wait, timeout=0.05)).call({}, anyio.CapacityLimiter(1))
    print(result.text)

anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "wait did not finish within 0.05 s\n"


async def test_functions_of_every_kind_are_called() -> None:
    class Greeter:
        def greet(self, name: str) -> str:
            return f"hello {name}"

        async def __call__(self, name: str) -> str:
            return f"called {name}"

    async def greet(name: str, greeting: str) -> str:
        return f"{greeting} {name}"

    assert (await call(Greeter().greet, name="Ada")).text == "hello Ada"
    assert (await call(Tool(Greeter(), name="greeter"), name="Ada")).text == "called Ada"
    assert (await call(Tool(partial(greet, greeting="hi"), name="hi"), name="Ada")).text == "hi Ada"
    assert (await call(Tool(lambda word: [word, None], name="echo"), word=1)).text == "[1,null]"


async def test_result_without_json_form_is_an_error() -> None:
    result = await call(Tool(lambda: threading.Lock(), name="lock"))  # noqa: PLW0108
    assert result.is_error
    assert "lock returned lock, which has no JSON form" in result.text


@pytest.mark.parametrize("is_async", [True, False])
async def test_call_that_takes_too_long_is_an_error(is_async: bool) -> None:
    released = threading.Event()

    async def wait() -> None:
        await anyio.sleep_forever()

    tool = Tool(wait if is_async else lambda: released.wait(60), name="slow", timeout=0.05)
    try:
        assert await call(tool) == ToolResult("slow did not finish within 0.05 s", is_error=True)
    finally:
        released.set()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda *words: words, "cannot be passed by name"),
        (lambda **words: words, "cannot be passed by name"),
        (lambda lock: lock, None),
    ],
)
def test_function_that_cannot_be_a_tool_is_reported_with_its_position(value: Any, reason: str | None) -> None:
    tools = [forecast, Tool(value, name="it")]
    if reason is None:
        assert [tool.name for tool in tool_functions(tools)] == ["forecast", "it"]
        return
    with pytest.raises(ValidationError, match=reason) as caught:
        tool_functions(tools)
    assert [field.path for field in caught.value.fields] == ["tools[1]"]


def test_annotation_without_schema_is_reported() -> None:
    def lock(it: threading.Event) -> None: ...

    with pytest.raises(ValidationError, match=r"tools\[0\]"):
        tool_functions([lock])


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ([lambda x: x], "<lambda>"),
        ([forecast, forecast], "a name that no other tool has"),
        (["forecast"], "a function or a Tool"),
        ("forecast", "a list of functions"),
        ([Tool(forecast, timeout=0)], "a number of seconds > 0"),
        ([Tool(forecast, name="a b")], "a b"),
        ([forecast] * 101, "at most 100 items"),
    ],
)
def test_invalid_option_is_reported(tools: Any, named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        validate_options(RunOptions(agent="x", prompt="hi", tools=tools))


def test_server_of_the_same_name_is_reported() -> None:
    server = McpServer("tools", command="x")
    with pytest.raises(ValidationError, match="server of the option `tools`"):
        validate_options(RunOptions(agent="x", prompt="hi", tools=[forecast], mcp_servers=[server]))


def test_docstring_without_sections_is_the_description() -> None:
    assert parse_docstring("One.\n\nTwo: three.") == ("One.\n\nTwo: three.", {})
    kind: Literal["x"] = "x"
    assert parse_docstring(f"Do.\n\nArgs:\n    {kind}: The x.\n\n    y: The y.\nRaises:\n    z: No.")[1] == {
        "x": "The x.", "y": "The y.",
    }  # fmt: skip
