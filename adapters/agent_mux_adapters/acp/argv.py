"""Run options to the command of an ACP agent; all other options are passed in the protocol."""

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.acp import acp_context

ACP = "acp"
EXECUTABLE_VARIABLE = "AMUX_ACP_EXECUTABLE"
"""Names a program that implements ACP without arguments, for runs without a command."""


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command of the run and notes about options that ACP lacks."""
    return SpawnArgs(
        argv=(environment.executable, *environment.arguments),
        protocol=ACP,
        counts_turns=False,
        notes=_notes(options),
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return what the codec needs, including the attachments."""
    return acp_context(ACP, options, spawn)


def _notes(options: RunOptions) -> tuple[str, ...]:
    unsupported = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "max_output_tokens": options.output_limit,
        "thinking_budget_tokens": options.thinking_budget_tokens,
    }
    notes = [f"ACP has no setting for {name}: ignored" for name, value in unsupported.items() if value is not None]
    if options.no_session:
        notes.append("ACP has no setting for no_session: ignored")
    if options.approval_mode == "deny":
        notes.append(
            "an ACP agent decides what needs approval, and only that can be denied: configure it to ask for all"
        )
    if options.system_prompt is not None:
        notes.append("ACP has no system prompt: it is put before the first prompt")
    return tuple(notes)
