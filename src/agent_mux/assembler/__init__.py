"""Facts to contract-conforming events: the one place that builds what section 25 of the event spec demands."""

from agent_mux.assembler.emitter import StreamContext
from agent_mux.assembler.interactions import OpenInteraction
from agent_mux.assembler.outcome import Cause, Ending, ExitReason, Verdict
from agent_mux.assembler.stream import StreamAssembler

__all__ = ["Cause", "Ending", "ExitReason", "OpenInteraction", "StreamAssembler", "StreamContext", "Verdict"]
