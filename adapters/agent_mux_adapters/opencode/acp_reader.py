"""`opencode acp`: OpenCode behind the Agent Client Protocol, to read recordings only.

Unlike `opencode serve`, it does not report where a model call begins, retries, compaction, questions, the work of
sub-agents, or the tokens of each model call. No run uses it.
"""

from collections.abc import Collection
from typing import Any

from agent_mux.sdk.facts import FileEffect
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader, acp_protocol
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.tool_results import effects_of
from agent_mux_adapters.opencode.tools import INVALID_TOOL, NO_OUTPUT, SHELL_METADATA, McpToolNames


class OpencodeAcpTools(ToolReader):
    """The meaning of OpenCode's tool calls: the title is the tool's name; input, output and metadata are its own."""

    def name(self, call: AcpCall) -> str:
        """Return the tool's name; for an unknown tool, the name that the model used."""
        name = super().name(call)
        return text(mapping(call.raw_input).get("tool")) or name if name == INVALID_TOOL else name

    def input(self, call: AcpCall) -> Any:
        """Return the input without the working directory, which OpenCode adds to commands."""
        given = super().input(call)
        if call.kind == "execute" and isinstance(given, dict):
            return {key: value for key, value in given.items() if key != "cwd"}
        return given

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Return server and tool of an MCP call, whose name begins with the server's name."""
        return super().mcp(call, servers) or (None if servers else McpToolNames().mcp(self.name(call)))

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return the output of the command, without the remarks that OpenCode adds for the model."""
        printed, _, _ = text(self._metadata(call).get("output")).partition(SHELL_METADATA)
        return (None if printed == NO_OUTPUT else printed or None), None

    def error(self, call: AcpCall) -> str | None:
        """Return the error; a stopped command counts as failed, although OpenCode reports it as completed."""
        error = super().error(call)
        metadata = self._metadata(call)
        if error is None and "exit" in metadata and metadata["exit"] is None:
            return self.output(call) or "the command did not exit"
        return error

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """Return the effects on files, from the input and the metadata."""
        return effects_of(self.name(call), mapping(call.raw_input), self._metadata(call), cwd)

    def _metadata(self, call: AcpCall) -> Any:
        return mapping(mapping(call.raw_output).get("metadata"))


ACP_PROTOCOL = acp_protocol(
    AcpQuirks(agent="opencode", tools=OpencodeAcpTools()),
    loses=(
        "the start and the tokens of each model call",
        "retries",
        "compaction of the context",
        "questions",
        "sub-agents",
        "streaming tool inputs",
        "the stderr of commands (merged into stdout)",
    ),
)
