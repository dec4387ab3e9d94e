"""The built-in toolset as a whole, and the limits that the seeds give it (phi-core; zidane)."""

from agent_loop.tools.builtin import ShellTool, default_tools
from agent_loop.tools.tool import Tool, kind_of, label_of, risk_of


def test_default_tools_are_files_shell_todos_and_questions() -> None:
    names = [tool.name for tool in default_tools()]
    assert names == [
        "read_file", "write_file", "edit", "multi_edit", "apply_patch", "ls", "glob", "grep", "shell",
        "write_todos", "ask_user",
    ]  # fmt: skip


def test_every_default_tool_has_name_label_description_and_a_schema_of_an_object() -> None:
    for tool in default_tools():
        assert isinstance(tool, Tool)
        assert tool.description
        assert label_of(tool)
        assert tool.parameters["type"] == "object"


def test_kind_and_risk_of_the_default_tools() -> None:
    kinds = {tool.name: (kind_of(tool), risk_of(tool)) for tool in default_tools()}
    assert kinds["shell"] == ("execute", "high")
    assert {kinds[name] for name in ("read_file", "ls", "glob", "grep")} == {("read", "low")}
    assert {kinds[name][0] for name in ("write_file", "edit", "multi_edit")} == {"edit"}
    assert kinds["ask_user"][0] == "ask"


def test_limits_of_the_shell_are_those_of_the_seeds() -> None:
    shell = ShellTool()
    assert (shell.timeout, shell.max_output_bytes, shell.metadata) == (120.0, 32_768, True)
    assert "rm -rf /" in shell.denied
