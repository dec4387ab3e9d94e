"""The built-in tools: files, a shell, todos, questions to the user, and calls of an HTTP service."""

from agent_loop.tools.builtin.ask import AskUserTool
from agent_loop.tools.builtin.background import BackgroundCommands, ShellOutputTool, ShellStopTool
from agent_loop.tools.builtin.http import HTTPTool
from agent_loop.tools.builtin.sandbox import ShellSandbox
from agent_loop.tools.builtin.shell import ShellTool
from agent_loop.tools.builtin.todos import WriteTodosTool, incomplete
from agent_loop.tools.tool import Tool

__all__ = [
    "AskUserTool",
    "BackgroundCommands",
    "HTTPTool",
    "ShellSandbox",
    "ShellTool",
    "WriteTodosTool",
    "default_tools",
    "file_tools",
    "incomplete",
    "workspace_tools",
]


def file_tools() -> tuple[Tool, ...]:
    """Return `read_file`, `write_file`, `edit`, `multi_edit`, `apply_patch`, `ls`, `glob`, `grep`."""
    # Imported here, so that an agent without file tools does not load them.
    from agent_loop.tools.builtin.apply_patch import ApplyPatchTool  # noqa: PLC0415
    from agent_loop.tools.builtin.edit import EditTool, MultiEditTool  # noqa: PLC0415
    from agent_loop.tools.builtin.grep import GrepTool  # noqa: PLC0415
    from agent_loop.tools.builtin.listing import GlobTool, ListTool  # noqa: PLC0415
    from agent_loop.tools.builtin.read import ReadTool  # noqa: PLC0415
    from agent_loop.tools.builtin.write import WriteTool  # noqa: PLC0415

    changing = (WriteTool(), EditTool(), MultiEditTool(), ApplyPatchTool())
    return (ReadTool(), *changing, ListTool(), GlobTool(), GrepTool())


def workspace_tools(shell: ShellTool) -> tuple[Tool, ...]:
    """Return the tools that work in a workspace: the file tools and the shell, with its background commands if any."""
    background = shell.background
    further = () if background is None else (ShellOutputTool(background), ShellStopTool(background))
    return (*file_tools(), shell, *further)


def default_tools(shell: ShellTool | None = None) -> tuple[Tool, ...]:
    """Return the default tools of an agent: the file tools, `shell`, todos and questions.

    A shell with background commands has the tools `shell_output` and `shell_stop` beside it. `shell` replaces
    the shell tool with default settings.
    """
    return (*workspace_tools(shell or ShellTool()), WriteTodosTool(), AskUserTool())
