"""`opencode acp`: OpenCode behind the Agent Client Protocol, for whoever already speaks that.

It loses what `opencode serve` tells: where a model call begins, retries, the compaction of the context, questions, what
sub-agents do, and the tokens of each model call. No run of ours uses it.
"""

from collections.abc import Collection
from typing import Any

from agent_mux.facts import FileEffect
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader, acp_protocol
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.calls import NO_OUTPUT, REMARKS
from agent_mux_adapters.opencode.files import effects_of
from agent_mux_adapters.opencode.names import INVALID_TOOL, Names


class OpencodeTools(ToolReader):
    """Calls are announced with the tool's name as their title; input, output and metadata are OpenCode's own."""

    def name(self, call: AcpCall) -> str:
        """The tool; of one that is not there, the name the model called."""
        name = super().name(call)
        return text(mapping(call.raw_input).get("tool")) or name if name == INVALID_TOOL else name

    def input(self, call: AcpCall) -> Any:
        """The working directory is added to commands by OpenCode."""
        given = super().input(call)
        if call.kind == "execute" and isinstance(given, dict):
            return {key: value for key, value in given.items() if key != "cwd"}
        return given

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Tools of MCP servers begin with the server's name."""
        return super().mcp(call, servers) or (None if servers else Names().mcp(self.name(call)))

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """What OpenCode remarks for the model was not printed by the command."""
        printed, _, _ = text(self._metadata(call).get("output")).partition(REMARKS)
        return (None if printed == NO_OUTPUT else printed or None), None

    def error(self, call: AcpCall) -> str | None:
        """A command that was stopped has no exit code, and is called completed."""
        error = super().error(call)
        metadata = self._metadata(call)
        if error is None and "exit" in metadata and metadata["exit"] is None:
            return self.output(call) or "the command did not exit"
        return error

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """As its input and its metadata tell."""
        return effects_of(self.name(call), mapping(call.raw_input), self._metadata(call), cwd)

    def _metadata(self, call: AcpCall) -> Any:
        return mapping(mapping(call.raw_output).get("metadata"))


ACP_PROTOCOL = acp_protocol(
    AcpQuirks(agent="opencode", tools=OpencodeTools()),
    loses=(
        "where model calls begin, and the tokens of each",
        "retries",
        "the compaction of the context",
        "questions",
        "sub-agents",
        "tool inputs as they stream",
        "stderr of commands apart from stdout",
    ),
)
