"""Any interactive program, run at a pseudo-terminal: for agents without a protocol."""

from collections.abc import Callable
from functools import partial

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, NativeProtocol
from agent_mux.sdk.codec import CodecContext
from agent_mux_adapters.terminal.argv import CUSTOM, build_spawn_args, codec_context
from agent_mux_adapters.terminal.codec import CustomTerminalCodec, TerminalCodec
from agent_mux_adapters.terminal.profile import DEFAULT, Profile, Rest, built_in

__all__ = ["ADAPTER", "CAPABILITIES"]

REST: dict[Rest, float] = {"short": 0.7, "long": 3.0}
"""Seconds without output after which the screen is read; longer than a spinner's pause."""
LOSES = (
    "tools and thinking: they cannot be distinguished from text",
    "tokens and cost",
    "the start of model calls, and retries",
    "sub-agents",
    "streaming text",
    "text that scrolled off the screen of a full-screen program",
)

_EMITS = frozenset({
    "approval_denied", "approval_granted", "approval_request", "auth_error", "error", "input_required", "message_start",
    "message_stop", "text_delta", "turn_end", "turn_start",
})  # fmt: skip

CAPABILITIES = AgentCapabilities(
    agent="terminal",
    supports_multi_turn=True,
    approval_modes=("yolo", "prompt", "deny"),
    extra_args=True,
    requires_tool_approval=True,
    interactive_mode=True,
    stdin_injection=True,
    requires_pty=True,
    platforms=("linux", "darwin"),
    emits=_EMITS,
)


def _built_in(profile: Profile) -> NativeProtocol:
    names = " or ".join(f"`{program}`" for program in profile.programs)
    others = "all other programs" if profile.name == DEFAULT else "programs for which it is selected by name"
    chosen_for = f"programs named {names}" if names else others
    return _protocol(profile.name, partial(TerminalCodec, profile), profile.rest, chosen_for)


def _protocol(name: str, codec: Callable[[CodecContext], TerminalCodec], rest: Rest, chosen_for: str) -> NativeProtocol:
    return NativeProtocol(
        name=name,
        codec=codec,
        streams=frozenset(),
        two_way=True,
        sniff=lambda _: False,
        framing="chunks",
        quiet_after=REST[rest],
        chosen_for=chosen_for,
        loses=LOSES,
    )


ADAPTER = Adapter(
    agent="terminal",
    display_name="Terminal program",
    executables=(),
    takes_command=True,
    executable_variable="AMUX_TERMINAL_EXECUTABLE",
    tested_version="0",
    capabilities=CAPABILITIES,
    protocols={
        **{name: _built_in(profile) for name, profile in built_in().items()},
        **{
            name: _protocol(name, CustomTerminalCodec, rest, f"the user's own profiles with a {rest} rest")
            for rest, name in CUSTOM.items()
        },
    },
    spawn=build_spawn_args,
    context=codec_context,
    install=(),
    auth_guidance="log in by running the program in a terminal yourself",
)
