"""Facts to contract-conforming events: the one place that builds what section 25 of the event spec demands."""

from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.interactions import OpenInteraction
from agent_mux.assembler.stream import StreamAssembler
from agent_mux.assembler.verdict import Cause, Ending, ExitReason, Verdict

__all__ = ["Cause", "Ending", "ExitReason", "OpenInteraction", "StreamAssembler", "StreamContext", "Verdict"]
