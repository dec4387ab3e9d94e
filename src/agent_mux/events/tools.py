"""The events of tool calls, files, commands, MCP calls and sub-agents. See docs/spec/events.md, sections 9 to 13."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from agent_mux.events.base import BaseEvent, Bytes, CostRecord, Milliseconds, TruncatedBytes
from agent_mux.events.content import Accumulated


class ToolCallStartEvent(BaseEvent, frozen=True):
    """The agent starts a call of one of its native tools. See docs/spec/events.md, section 9.2."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"

    tool_call_id: Annotated[
        str, Meta(description="Id of the call, which all of its events carry; unique within the run.")
    ]
    tool_name: Annotated[str, Meta(description="The agent's own name of the tool.")]
    input_accumulated: Annotated[
        str, Meta(description=("The input so far as JSON text: empty if it follows in fragments, complete otherwise."))
    ]
    truncated_bytes: TruncatedBytes = None


class ToolInputDeltaEvent(BaseEvent, frozen=True):
    """A fragment of a tool call's input. See docs/spec/events.md, section 9.3."""

    type: ClassVar[Literal["tool_input_delta"]] = "tool_input_delta"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    delta: Annotated[str, Meta(description="The new JSON text.")]
    input_accumulated_view: Annotated[Accumulated, Meta(description="The input so far, this delta included.")] = field(
        name="inputAccumulated"
    )

    @property
    def input_accumulated(self) -> str:
        """The accumulated input as a string."""
        return str(self.input_accumulated_view)


class ToolCallReadyEvent(BaseEvent, frozen=True):
    """The input of a tool call is complete; the tool is about to run. See docs/spec/events.md, section 9.4."""

    type: ClassVar[Literal["tool_call_ready"]] = "tool_call_ready"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    tool_name: Annotated[str, Meta(description="The agent's own name of the tool.")]
    input: Annotated[Any, Meta(description="The parsed input.")]
    truncated_bytes: TruncatedBytes = None


class ToolResultEvent(BaseEvent, frozen=True):
    """A tool call succeeded. See docs/spec/events.md, section 9.5."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    tool_name: Annotated[str, Meta(description="The agent's own name of the tool.")]
    output: Annotated[Any, Meta(description="The output that the model receives.")]
    duration_ms: Annotated[
        Milliseconds, Meta(description="Duration that the agent reports, else the time since `tool_call_ready`.")
    ]
    truncated_bytes: TruncatedBytes = None


class ToolErrorEvent(BaseEvent, frozen=True):
    """A tool call failed, was denied, or never finished. See docs/spec/events.md, section 9.6."""

    type: ClassVar[Literal["tool_error"]] = "tool_error"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    tool_name: Annotated[str, Meta(description="The agent's own name of the tool.")]
    error: Annotated[str, Meta(description="The error text that the model receives.")]
    truncated_bytes: TruncatedBytes = None


class FileReadEvent(BaseEvent, frozen=True):
    """A tool read a file. See docs/spec/events.md, section 10."""

    type: ClassVar[Literal["file_read"]] = "file_read"

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory.")]


class FileWriteEvent(BaseEvent, frozen=True):
    """A tool overwrote a file. See docs/spec/events.md, section 10."""

    type: ClassVar[Literal["file_write"]] = "file_write"

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory.")]
    byte_count: Annotated[Bytes, Meta(description="Number of bytes written.")]


class FileCreateEvent(BaseEvent, frozen=True):
    """A tool created a file that did not exist before. See docs/spec/events.md, section 10."""

    type: ClassVar[Literal["file_create"]] = "file_create"

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory.")]
    byte_count: Annotated[Bytes, Meta(description="Size of the new file in bytes.")]


class FileDeleteEvent(BaseEvent, frozen=True):
    """A tool deleted a file. See docs/spec/events.md, section 10."""

    type: ClassVar[Literal["file_delete"]] = "file_delete"

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory.")]


class FilePatchEvent(BaseEvent, frozen=True):
    """A tool changed a part of a file. See docs/spec/events.md, section 10."""

    type: ClassVar[Literal["file_patch"]] = "file_patch"

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory.")]
    diff: Annotated[str, Meta(description="Unified diff (`--- a/...`, `+++ b/...`, `@@` hunks).")]
    truncated_bytes: TruncatedBytes = None


class ShellStartEvent(BaseEvent, frozen=True):
    """A tool call starts a command. See docs/spec/events.md, section 11.1."""

    type: ClassVar[Literal["shell_start"]] = "shell_start"

    command: Annotated[str, Meta(description="The command line as the agent executed it.")]
    cwd: Annotated[str, Meta(description="Working directory of the command.")]
    truncated_bytes: TruncatedBytes = None


class ShellStdoutDeltaEvent(BaseEvent, frozen=True):
    """A chunk of a command's standard output. See docs/spec/events.md, section 11.2."""

    type: ClassVar[Literal["shell_stdout_delta"]] = "shell_stdout_delta"

    delta: Annotated[str, Meta(description="The new output.")]
    truncated_bytes: TruncatedBytes = None


class ShellStderrDeltaEvent(BaseEvent, frozen=True):
    """A chunk of a command's standard error. See docs/spec/events.md, section 11.3."""

    type: ClassVar[Literal["shell_stderr_delta"]] = "shell_stderr_delta"

    delta: Annotated[str, Meta(description="The new output.")]
    truncated_bytes: TruncatedBytes = None


class ShellExitEvent(BaseEvent, frozen=True):
    """A command ended. See docs/spec/events.md, section 11.4."""

    type: ClassVar[Literal["shell_exit"]] = "shell_exit"

    exit_code: Annotated[
        int, Meta(description="Exit code; -1 when a signal ended the command or the agent reported no end.")
    ]
    duration_ms: Annotated[
        Milliseconds, Meta(description="Duration that the agent reports, else the time since the command started.")
    ]
    truncated_bytes: TruncatedBytes = None


class McpToolCallStartEvent(BaseEvent, frozen=True):
    """The agent calls a tool of an MCP server. See docs/spec/events.md, section 12.1."""

    type: ClassVar[Literal["mcp_tool_call_start"]] = "mcp_tool_call_start"

    tool_call_id: Annotated[
        str, Meta(description="Id of the call, which all of its events carry; unique within the run.")
    ]
    server: Annotated[str, Meta(description="Name of the MCP server.")]
    tool_name: Annotated[str, Meta(description="Name of the tool within the server.")]
    input: Annotated[Any, Meta(description="The complete parsed input.")]
    truncated_bytes: TruncatedBytes = None


class McpToolResultEvent(BaseEvent, frozen=True):
    """A call of an MCP tool succeeded. See docs/spec/events.md, section 12.1."""

    type: ClassVar[Literal["mcp_tool_result"]] = "mcp_tool_result"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    server: Annotated[str, Meta(description="Name of the MCP server.")]
    tool_name: Annotated[str, Meta(description="Name of the tool within the server.")]
    output: Annotated[Any, Meta(description="The output that the model receives.")]
    truncated_bytes: TruncatedBytes = None


class McpToolErrorEvent(BaseEvent, frozen=True):
    """A call of an MCP tool failed, in the tool or in its transport. See docs/spec/events.md, section 12.1."""

    type: ClassVar[Literal["mcp_tool_error"]] = "mcp_tool_error"

    tool_call_id: Annotated[str, Meta(description="Id of the call.")]
    server: Annotated[str, Meta(description="Name of the MCP server.")]
    tool_name: Annotated[str, Meta(description="Name of the tool within the server.")]
    error: Annotated[str, Meta(description="The error message.")]
    truncated_bytes: TruncatedBytes = None


class SubagentSpawnEvent(BaseEvent, frozen=True):
    """The agent delegates a task to a sub-agent. See docs/spec/events.md, section 13.1."""

    type: ClassVar[Literal["subagent_spawn"]] = "subagent_spawn"

    subagent_id: Annotated[
        str, Meta(description="Id of the delegation, which all of its events carry; unique within the run.")
    ]
    agent_name: Annotated[str, Meta(description="Kind of the sub-agent.")]
    prompt: Annotated[str, Meta(description="The delegated task.")]
    truncated_bytes: TruncatedBytes = None


class SubagentResultEvent(BaseEvent, frozen=True):
    """A sub-agent finished its task. See docs/spec/events.md, section 13.1."""

    type: ClassVar[Literal["subagent_result"]] = "subagent_result"

    subagent_id: Annotated[str, Meta(description="Id of the delegation.")]
    agent_name: Annotated[str, Meta(description="Kind of the sub-agent.")]
    summary: Annotated[str, Meta(description="The sub-agent's report.")]
    cost: Annotated[CostRecord | None, Meta(description="Cost of the sub-agent, where known.")] = None
    truncated_bytes: TruncatedBytes = None


class SubagentErrorEvent(BaseEvent, frozen=True):
    """A sub-agent failed or never reported. See docs/spec/events.md, section 13.1."""

    type: ClassVar[Literal["subagent_error"]] = "subagent_error"

    subagent_id: Annotated[str, Meta(description="Id of the delegation.")]
    agent_name: Annotated[str, Meta(description="Kind of the sub-agent.")]
    error: Annotated[str, Meta(description="The error message.")]
    truncated_bytes: TruncatedBytes = None
