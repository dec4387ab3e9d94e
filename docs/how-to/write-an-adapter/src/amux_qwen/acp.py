"""Qwen Code's third protocol, the Agent Client Protocol: the dialect does it, but for these quirks."""

import signal
from typing import Any

from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, text
from amux_qwen.outcome import API_ERROR, failure_of


class QwenTools(ToolReader):
    """What a tool call means: the dialect knows it, but for commands that print nothing."""

    def output(self, call: AcpCall) -> str:
        """What a command printed; what is shown is a report to the model, with its directory and exit code."""
        returned = mapping(call.raw_output)
        return text(returned.get("output")) if returned.get("type") == "shell_result" else super().output(call)

    def result(self, call: AcpCall) -> Any:
        """Of a command: what it printed, be it nothing."""
        return self.output(call) if call.is_shell else super().result(call)


QUIRKS = AcpQuirks(
    agent="qwen",
    tools=QwenTools(),
    settings=lambda _context, _opened: (),  # flags say the model and the mode,
    takes_system_prompt=False,  # and the system prompt
    asides={API_ERROR: failure_of},
    signal_with_servers=signal.SIGTERM,
)
