"""Tools by name, and aliases."""

import pytest

from agent_loop.errors import ConfigurationError
from agent_loop.messages import AssistantMessage, Text, ToolCall, ToolMessage, user
from agent_loop.tools.builtin import HTTPTool
from agent_loop.tools.function import FunctionTool, function_tool
from agent_loop.tools.toolset import Toolset


def made(name: str) -> FunctionTool:
    return function_tool(lambda: name, name=name, description=f"{name}.")


def test_tools_are_keyed_by_canonical_name() -> None:
    shell = made("shell")
    tools = Toolset([shell, made("ls")])
    assert tools.get("shell") is shell
    assert tools.get("Bash") is None
    assert (tools.names, len(tools), "ls" in tools) == (("shell", "ls"), 2, True)
    assert [tool.name for tool in tools] == ["shell", "ls"]


def test_one_set_has_native_tools_and_http_tools() -> None:
    http = HTTPTool(name="remote", description="Remote.", parameters={}, callback_url="http://localhost/")
    tools = Toolset([made("ls"), http])
    assert (tools.names, tools.get("remote")) == (("ls", "remote"), http)


def test_duplicate_names_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="two tools are named 'ls'"):
        Toolset([made("ls"), made("ls")])


@pytest.mark.parametrize("name", ["a b", "a" * 65, "ä", "a\n", "a.b"])
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(ConfigurationError, match="not a valid tool name"):
        Toolset([made(name)])
    with pytest.raises(ConfigurationError, match="not a valid tool name"):
        Toolset([made("ls")], {"ls": name})


def test_two_tools_of_one_wire_name_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="have the same wire name 'Bash'"):
        Toolset([made("shell"), made("Bash")], {"shell": "Bash"})
    with pytest.raises(ConfigurationError, match="have the same wire name 'X'"):
        Toolset([made("a"), made("b")], {"a": "X", "b": "X"})


def test_definitions_go_out_with_wire_names() -> None:
    definitions = Toolset([made("shell"), made("ls")], {"shell": "Bash"}).definitions()
    assert [definition.name for definition in definitions] == ["Bash", "ls"]
    assert definitions[0].description == "shell."


def test_names_are_rewritten_both_ways_even_where_two_are_swapped() -> None:
    tools = Toolset([made("a"), made("b"), made("c")], {"a": "b", "b": "a"})
    assert [tools.wire(name) for name in "abc"] == ["b", "a", "c"]
    assert [tools.canonical(tools.wire(name)) for name in "abc"] == ["a", "b", "c"]
    assert tools.canonical("unknown") == "unknown"


def test_calls_of_the_model_are_rewritten_to_canonical_names_at_once() -> None:
    tools = Toolset([made("shell")], {"shell": "Bash"})
    call = ToolCall("1", "Bash", {"command": "ls"})
    heard = AssistantMessage(content=(Text("now"), call, ToolCall("2", "other")), native={"name": "Bash"})
    kept = tools.to_canonical(heard)
    assert [each.name for each in kept.tool_calls] == ["shell", "other"]
    assert kept.native == {"name": "Bash"}
    assert tools.to_wire([kept])[0] == heard


def test_results_and_calls_of_the_history_go_out_with_wire_names_tools_or_not() -> None:
    tools = Toolset([], {"shell": "Bash"})
    history = (
        user("hello"),
        AssistantMessage(content=(ToolCall("1", "shell"),)),
        ToolMessage(tool_call_id="1", name="shell", content=(Text("x"),)),
    )
    sent = tools.to_wire(history)
    assert sent[0] is history[0]
    assert [call.name for call in sent[1].tool_calls] == ["Bash"]
    assert sent[2].name == "Bash"
    assert history[2].name == "shell"


def test_messages_without_aliases_are_returned_unchanged() -> None:
    message = AssistantMessage(content=(ToolCall("1", "ls"),))
    assert Toolset([made("ls")]).to_canonical(message) is message
