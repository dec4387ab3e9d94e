"""Tool calling events. Source: agent-events spec, section 9.

File operations events. Source: agent-events spec, section 10.


Shell operations events. Source: agent-events spec, section 11.


MCP tool calling events. Source: agent-events spec, section 12.


Sub-agent dispatch events. Source: agent-events spec, section 13.
"""

from typing import Any, ClassVar, Literal

from msgspec import field

from agent_mux.events.base import BaseEvent, Bytes, CostRecord, Milliseconds
from agent_mux.events.content import Accumulated


class ToolCallStartEvent(BaseEvent, frozen=True):
    """The agent begins to construct a call of one of its native tools. Source: agent-events spec, section 9.2."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"

    tool_call_id: str
    """Shared by all events of this call; unique within the run."""
    tool_name: str
    """The agent's own name of the tool."""
    input_accumulated: str
    """JSON text of the input so far: empty while streaming, complete otherwise."""


class ToolInputDeltaEvent(BaseEvent, frozen=True):
    """A fragment of the tool's input (JSON text). Source: agent-events spec, section 9.3."""

    type: ClassVar[Literal["tool_input_delta"]] = "tool_input_delta"

    tool_call_id: str
    """The call."""
    delta: str
    """The new text."""
    input_accumulated_view: Accumulated = field(name="inputAccumulated")
    """The text so far, as a view; read `input_accumulated` for the string."""

    @property
    def input_accumulated(self) -> str:
        """All text so far, this delta included."""
        return str(self.input_accumulated_view)


class ToolCallReadyEvent(BaseEvent, frozen=True):
    """The input is complete; the tool is about to run. Source: agent-events spec, section 9.4."""

    type: ClassVar[Literal["tool_call_ready"]] = "tool_call_ready"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    input: Any
    """The parsed input."""


class ToolResultEvent(BaseEvent, frozen=True):
    """The tool succeeded. Source: agent-events spec, section 9.5."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    output: Any
    """What the tool gave the model."""
    duration_ms: Milliseconds
    """From ready to result where the agent does not say."""


class ToolErrorEvent(BaseEvent, frozen=True):
    """The tool failed, was denied, or never finished. Source: agent-events spec, section 9.6."""

    type: ClassVar[Literal["tool_error"]] = "tool_error"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    error: str
    """What the tool gave the model."""


class FileReadEvent(BaseEvent, frozen=True):
    """A tool read a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_read"]] = "file_read"

    path: str
    """Absolute or workspace-relative."""


class FileWriteEvent(BaseEvent, frozen=True):
    """A tool overwrote a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_write"]] = "file_write"

    path: str
    """Absolute or workspace-relative."""
    byte_count: Bytes
    """Size of what was written."""


class FileCreateEvent(BaseEvent, frozen=True):
    """A tool made a file that was not there before. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_create"]] = "file_create"

    path: str
    """Absolute or workspace-relative."""
    byte_count: Bytes
    """Size of the new file."""


class FileDeleteEvent(BaseEvent, frozen=True):
    """A tool deleted a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_delete"]] = "file_delete"

    path: str
    """Absolute or workspace-relative."""


class FilePatchEvent(BaseEvent, frozen=True):
    """A tool changed part of a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_patch"]] = "file_patch"

    path: str
    """Absolute or workspace-relative."""
    diff: str
    """Unified diff (`--- a/...`, `+++ b/...`, `@@` hunks)."""


class ShellStartEvent(BaseEvent, frozen=True):
    """A command begins, inside its tool call. Source: agent-events spec, section 11.1."""

    type: ClassVar[Literal["shell_start"]] = "shell_start"

    command: str
    """As the agent executed it."""
    cwd: str
    """Its working directory."""


class ShellStdoutDeltaEvent(BaseEvent, frozen=True):
    """A chunk of the command's standard output. Source: agent-events spec, section 11.2."""

    type: ClassVar[Literal["shell_stdout_delta"]] = "shell_stdout_delta"

    delta: str
    """The new output."""


class ShellStderrDeltaEvent(BaseEvent, frozen=True):
    """A chunk of the command's standard error. Source: agent-events spec, section 11.3."""

    type: ClassVar[Literal["shell_stderr_delta"]] = "shell_stderr_delta"

    delta: str
    """The new output."""


class ShellExitEvent(BaseEvent, frozen=True):
    """The command ended. Source: agent-events spec, section 11.4."""

    type: ClassVar[Literal["shell_exit"]] = "shell_exit"

    exit_code: int
    """0 is success; -1: killed by a signal, or never reported."""
    duration_ms: Milliseconds
    """Wall clock."""


class McpToolCallStartEvent(BaseEvent, frozen=True):
    """A tool of an MCP server is called. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_call_start"]] = "mcp_tool_call_start"

    tool_call_id: str
    """Shared by the events of this call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool within the server."""
    input: Any
    """The complete parsed input."""


class McpToolResultEvent(BaseEvent, frozen=True):
    """The MCP tool succeeded. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_result"]] = "mcp_tool_result"

    tool_call_id: str
    """The call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool."""
    output: Any
    """What the tool gave the model."""


class McpToolErrorEvent(BaseEvent, frozen=True):
    """The MCP tool or its transport failed. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_error"]] = "mcp_tool_error"

    tool_call_id: str
    """The call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool."""
    error: str
    """What went wrong."""


class SubagentSpawnEvent(BaseEvent, frozen=True):
    """The agent delegates a task to another agent. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_spawn"]] = "subagent_spawn"

    subagent_id: str
    """Shared by the events of this delegation."""
    agent_name: str
    """Which kind of agent."""
    prompt: str
    """The task."""


class SubagentResultEvent(BaseEvent, frozen=True):
    """The sub-agent finished. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_result"]] = "subagent_result"

    subagent_id: str
    """The delegation."""
    agent_name: str
    """Which kind of agent."""
    summary: str
    """What it reported."""
    cost: CostRecord | None = None
    """What it cost."""


class SubagentErrorEvent(BaseEvent, frozen=True):
    """The sub-agent failed or never reported. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_error"]] = "subagent_error"

    subagent_id: str
    """The delegation."""
    agent_name: str
    """Which kind of agent."""
    error: str
    """What went wrong."""
