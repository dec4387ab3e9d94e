"""Names in `--allowed-tools` and `--disallowed-tools`: a misspelt one would allow or forbid nothing."""

from collections.abc import Iterable, Iterator

from agent_loop.cli.errors import UsageError
from agent_loop.cli.protocol import StartCommand
from agent_loop.cli.stream import DELEGATE_TOOL
from agent_loop.context.notes import TODO_TOOL
from agent_loop.loop.run import SKILL_TOOLS
from agent_loop.presets.tool_selection import KEPT
from agent_loop.tools.builtin.web_fetch import WebFetchTool
from agent_mux._util.suggestions import did_you_mean

OPTIONAL = KEPT | SKILL_TOOLS | {DELEGATE_TOOL, TODO_TOOL, WebFetchTool.name}
"""Tools that only some runs have. To name them is no mistake in the others."""


def check_tool_names(start: StartCommand, tools: Iterable[str], *, has_servers: bool) -> Iterator[str]:
    """Yield a warning for each allowed tool that does not exist. Raises `UsageError` for a disallowed one.

    The tools of MCP servers are not known yet: with a server, names such as `server__tool` are accepted.
    """
    known = {*tools, *OPTIONAL}

    def unknown(names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if name not in known and not (has_servers and "__" in name))

    for name in unknown(start.disallowed_tools):
        raise UsageError(f"no tool is named {name!r}, so nothing would be disallowed; {_advice(name, known)}")
    for name in unknown(start.allowed_tools):
        yield f"no tool is named {name!r}, so nothing more is allowed; {_advice(name, known)}"


def _advice(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known, f"the tools are {', '.join(sorted(known))}")
