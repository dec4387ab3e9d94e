"""Any interactive program, at a terminal of its own: for agents that speak no protocol."""

from functools import partial

from agent_mux.adapter import Adapter, AgentCapabilities, NativeProtocol
from agent_mux_adapters.terminal.argv import CUSTOM, build_spawn_args, codec_context
from agent_mux_adapters.terminal.codec import CustomTerminalCodec, TerminalCodec
from agent_mux_adapters.terminal.profile import built_in

__all__ = ["ADAPTER", "CAPABILITIES"]

QUIET_AFTER = 0.7  # seconds; spinners turn more often

CAPABILITIES = AgentCapabilities(
    agent="terminal",
    supports_multi_turn=True,
    approval_modes=("yolo", "prompt", "deny"),
    requires_tool_approval=True,
    interactive_mode=True,
    stdin_injection=True,
    requires_pty=True,
    platforms=("linux", "darwin"),
    emits=frozenset(),
)

ADAPTER = Adapter(
    agent="terminal",
    display_name="Terminal program",
    executables=(),
    takes_command=True,
    executable_variable="AMUX_TERMINAL_EXECUTABLE",
    min_version="0",
    tested_version="0",
    capabilities=CAPABILITIES,
    protocols={
        name: NativeProtocol(
            name=name,
            codec=CustomTerminalCodec if name == CUSTOM else partial(TerminalCodec, built_in()[name]),
            streams=frozenset(),
            two_way=True,
            sniff=lambda _: False,
            framing="chunks",
            quiet_after=QUIET_AFTER,
        )
        for name in (*built_in(), CUSTOM)
    },
    spawn=build_spawn_args,
    context=codec_context,
    install=(),
    auth_guidance="log in with the program itself, at a terminal of your own",
)
