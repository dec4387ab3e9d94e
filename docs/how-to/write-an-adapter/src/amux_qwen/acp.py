"""Qwen Code's third protocol, the Agent Client Protocol: the shared dialect with these quirks."""

import signal
from typing import Any

from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, text
from amux_qwen.outcome import API_ERROR, failure_of


class QwenTools(ToolReader):
    """Reads tool calls as the dialect does, except for the output of commands."""

    def output(self, call: AcpCall) -> str:
        """Return the output of a command; the displayed text is a report that includes directory and exit code."""
        returned = mapping(call.raw_output)
        return text(returned.get("output")) if returned.get("type") == "shell_result" else super().output(call)

    def result(self, call: AcpCall) -> Any:
        """Return the result of a call; for a command its output, even if empty."""
        return self.output(call) if call.is_shell else super().result(call)


QUIRKS = AcpQuirks(
    agent="qwen",
    tools=QwenTools(),
    settings=lambda _context, _opened: (),  # flags select the model and the mode
    takes_system_prompt=False,  # a flag passes it
    asides={API_ERROR: failure_of},
    signal_with_servers=signal.SIGTERM,
)
