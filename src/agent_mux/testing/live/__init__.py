"""Driving real CLIs offline.

What is said (`parts`), what one has to know of an agent (`kit`), where kits are found (`kits`), and what a provider
says when it does not answer (`refusals`).
"""

from agent_mux.testing.live.answers import answer, delegation
from agent_mux.testing.live.cache import cache_directory
from agent_mux.testing.live.kit import DUMMY_KEY, Gap, HomeProbes, LiveKit, ModelApi, Pin, Place, Unspeakable, Way
from agent_mux.testing.live.kits import kit_of, kits, pin_of
from agent_mux.testing.live.launch import Launch, launch
from agent_mux.testing.live.parts import (
    MCP_SERVER,
    SUBTASK,
    Answer,
    Ask,
    Delegate,
    Edit,
    Mcp,
    Part,
    Read,
    Say,
    Shell,
    Think,
    Todo,
    ToolPart,
    Write,
)
from agent_mux.testing.live.refusals import Refusal, refuse

__all__ = [
    "DUMMY_KEY",
    "MCP_SERVER",
    "SUBTASK",
    "Answer",
    "Ask",
    "Delegate",
    "Edit",
    "Gap",
    "HomeProbes",
    "Launch",
    "LiveKit",
    "Mcp",
    "ModelApi",
    "Part",
    "Pin",
    "Place",
    "Read",
    "Refusal",
    "Say",
    "Shell",
    "Think",
    "Todo",
    "ToolPart",
    "Unspeakable",
    "Way",
    "Write",
    "answer",
    "cache_directory",
    "delegation",
    "kit_of",
    "kits",
    "launch",
    "pin_of",
    "refuse",
]
