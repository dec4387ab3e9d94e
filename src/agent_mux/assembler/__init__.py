"""Conversion of facts to a conforming event stream. See docs/spec/events.md, section 25."""

from agent_mux.assembler.emitter import StreamContext
from agent_mux.assembler.interactions import OpenInteraction
from agent_mux.assembler.masks import Mask, Masks
from agent_mux.assembler.outcome import Cause, Ending, ExitReason, Verdict
from agent_mux.assembler.shown_requests import cut_diff, cut_input
from agent_mux.assembler.stream import RunAttempt, StreamAssembler
from agent_mux.assembler.text_limit import PASSED_ON, cut_text, size_of

__all__ = [
    "PASSED_ON",
    "Cause",
    "Ending",
    "ExitReason",
    "Mask",
    "Masks",
    "OpenInteraction",
    "RunAttempt",
    "StreamAssembler",
    "StreamContext",
    "Verdict",
    "cut_diff",
    "cut_input",
    "cut_text",
    "size_of",
]
