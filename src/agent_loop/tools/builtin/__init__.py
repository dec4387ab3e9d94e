"""The tools that come with us: files, a shell, todos, questions, and calls of an HTTP service."""

from agent_loop.tools.builtin.ask import ask_tool
from agent_loop.tools.builtin.http import HTTPTool
from agent_loop.tools.builtin.shell import ShellTool
from agent_loop.tools.builtin.todos import incomplete, todo_tool
from agent_loop.tools.tool import Tool

__all__ = ["HTTPTool", "ShellTool", "ask_tool", "default_tools", "incomplete", "todo_tool"]


def default_tools(shell: ShellTool | None = None) -> tuple[Tool, ...]:
    """What an agent has that nobody gave other tools: files, `shell` (this one, if given), todos, questions."""
    from agent_loop.tools.builtin.files import file_tools  # noqa: PLC0415  # only who wants all of them pays for them

    return (*file_tools(), shell or ShellTool(), todo_tool(), ask_tool())
