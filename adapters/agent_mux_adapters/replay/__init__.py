"""Replay of a recording as if its agent ran: `amux run replay demo`, `amux run replay fixtures/codex/0.169.0/exec_ok`.

The prompt is the recording: a fixture folder, the journal of a run, or the word `demo` for the built-in one. A real
process plays it through real pipes with the recorded timing, and the recorded agent's own codec reads it. Set
`AMUX_REPLAY_SPEED` to play it faster (2) or without pauses (0), and `AMUX_REPLAY_PATIENCE` to the seconds to wait for
input that the recording has (see player.py). Only the order of inputs has to be the recorded one: prompts may have
another text.
"""

import sys

from agent_mux.sdk.adapter import Adapter, AgentCapabilities
from agent_mux_adapters.replay.argv import PLAYER, absolute_files, context, named_files, spawn

CAPABILITIES = AgentCapabilities(
    agent="replay",
    supports_multi_turn=True,
    text_streaming=True,
    tool_call_streaming=True,
    thinking_streaming=True,
    parallel_tool_calls=True,
    approval_modes=("prompt", "yolo", "deny"),
    interactive_mode=True,
    stdin_injection=True,
    subagent_dispatch=True,
    platforms=("linux", "darwin"),
    emits=frozenset(),  # a replay emits what the recorded agent emitted
)

ADAPTER = Adapter(
    agent="replay",
    display_name="Replay",
    executables=(sys.executable,),
    executable_variable="AMUX_REPLAY_EXECUTABLE",
    tested_version="",  # the versions in its recordings are those of other programs
    version_argv=("-I", "-S", str(PLAYER), "--version"),
    capabilities=CAPABILITIES,
    protocols={},  # a replay uses those of the recorded agents
    spawn=spawn,
    context=context,
    named_files=named_files,
    absolute_files=absolute_files,
    install=(),
    auth_guidance="no action needed: this failure was recorded",
)
