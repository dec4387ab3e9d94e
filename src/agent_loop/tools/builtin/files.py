"""The tools for files, together."""

from agent_loop.tools.builtin.edit import EditTool
from agent_loop.tools.builtin.glob import GlobTool
from agent_loop.tools.builtin.grep import GrepTool
from agent_loop.tools.builtin.ls import ListTool
from agent_loop.tools.builtin.multi_edit import MultiEditTool
from agent_loop.tools.builtin.read import ReadTool
from agent_loop.tools.builtin.write import WriteTool
from agent_loop.tools.tool import Tool


def file_tools() -> tuple[Tool, ...]:
    """`read_file`, `write_file`, `edit`, `multi_edit`, `ls`, `glob`, `grep`. They keep nothing: share them freely."""
    return ReadTool(), WriteTool(), EditTool(), MultiEditTool(), ListTool(), GlobTool(), GrepTool()
