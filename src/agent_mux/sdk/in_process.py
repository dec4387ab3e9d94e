"""Python functions that an agent calls during a run: what `RunOptions.tools` and `RunOptions.hooks` take."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_mux._util.suggestions import did_you_mean
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.hooks import HOOK_TYPES, HookCall, HookDecision

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_NAMES = "a function named with 1 to 64 letters, digits, _ or -; or Tool(function, name=...)"
TOOL_SERVER = "tools"
"""Name of the MCP server that offers the functions, as the agent lists it."""
DEFAULT_TOOL_TIMEOUT = 50.0
"""Seconds for one call. Most agents give up a call after 60 seconds, and then do not learn the reason."""


@dataclass(frozen=True, slots=True)
class Tool(Checked):
    """A Python function that the agent can call, with another name, description or time limit than the default."""

    function: Callable[..., Any]
    """A function or coroutine function. Its parameters and their annotations become the JSON schema."""
    name: str | None = None
    """Name of the tool; default: the name of the function."""
    description: str | None = None
    """Description for the model; default: the docstring, whose `Args:` describe the parameters."""
    timeout: float = DEFAULT_TOOL_TIMEOUT
    """Seconds for one call, after which the agent receives an error."""

    @property
    def tool_name(self) -> str:
        """The name under which the agent sees the tool; empty if the function has none."""
        return self.name if self.name is not None else str(getattr(self.function, "__name__", ""))


@dataclass(frozen=True, slots=True)
class Block(Checked):
    """What a hook function returns to refuse the action: a tool call, a prompt, or the end of a turn."""

    reason: str = ""
    """Why, for the agent."""


HookReturn = Block | HookDecision | Mapping[str, Any] | None
HookFunction = Callable[[HookCall], HookReturn | Awaitable[HookReturn]]
"""A function or coroutine function that receives the call and returns None (no opinion), `Block`, a `HookDecision`, or
a mapping with the changed fields of the tool's input.
"""
HOOK_TIMEOUT = 60.0
"""Seconds for one call of a hook function."""


def check_hooks(hooks: Any, check: Callable[[bool, str, Any, str], None]) -> None:
    """Check the option `hooks`: None, a bool, or functions by hook type."""
    if hooks is None or isinstance(hooks, bool):
        return
    if not isinstance(hooks, Mapping):
        check(False, "hooks", hooks, "None, True, False, or a mapping from hook types to functions")
        return
    for name, function in hooks.items():
        hint = did_you_mean(str(name), HOOK_TYPES, f"one of {', '.join(HOOK_TYPES)}")
        check(name in HOOK_TYPES, f"hooks.{name}", name, f"a hook type; {hint}")
        check(callable(function), f"hooks.{name}", function, "a function")


def check_tools(tools: Any, servers: Sequence[str], check: Callable[[bool, str, Any, str], None]) -> None:
    """Check the option `tools`: callables with a valid name each, which no other tool has.

    `servers` are the names of the other MCP servers of the run.
    """
    if isinstance(tools, str | Mapping) or not isinstance(tools, Sequence):
        check(False, "tools", type(tools).__name__, "a list of functions")
        return
    names: set[str] = set()
    for index, value in enumerate(tools):
        path = f"tools[{index}]"
        if not isinstance(value, Tool) and not callable(value):
            check(False, path, value, "a function or a Tool")
            continue
        tool = as_tool(value)
        name, timeout = tool.tool_name, tool.timeout
        check(TOOL_NAME.fullmatch(name) is not None, path, name or type(tool.function).__name__, TOOL_NAMES)
        check(name not in names, path, name, "a name that no other tool has; see Tool(function, name=...)")
        is_time = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
        check(is_time, f"{path}.timeout", timeout, "a number of seconds > 0")
        names.add(name)
    for index, server in enumerate(servers):
        check(
            server != TOOL_SERVER,
            f"mcp_servers[{index}].name",
            server,
            f"another name: {TOOL_SERVER!r} is the server of the option `tools`",
        )


def as_tool(value: Tool | Callable[..., Any]) -> Tool:
    """Return a function as a tool with the defaults."""
    return value if isinstance(value, Tool) else Tool(value)
