"""The tools of Claude Code, as the dialect looks them up."""

from agent_mux_adapters._dialects.stream_json.tools import ToolTable
from agent_mux_adapters.claude import tools
from agent_mux_adapters.claude.results import tool_facts
from agent_mux_adapters.claude.risk import assess

TOOLS = ToolTable(
    delegating=tools.DELEGATING_TOOLS,
    question=tools.QUESTION_TOOL,
    shell_of=tools.shell_of,
    done=tool_facts,
    action_of=tools.action_of,
    detail_of=tools.detail_of,
    risk_of=assess,
    command_of=tools.command_of,
    path_fields=("file_path", "notebook_path", "path"),
)
