"""Run options to the program's own command, its profile and the size of its terminal."""

from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext, TerminalSize
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters.terminal.profile import MODEL, Profile, Rest, built_in, profile_for, read_profile
from agent_mux_adapters.terminal.screen import require_extra

PROFILE_VARIABLE = "AMUX_TERMINAL_PROFILE"
"""Names a built-in profile or a profile file; unset, the program's name selects the profile."""
CUSTOM: dict[Rest, str] = {"short": "custom", "long": "custom-patient"}
"""The protocol of a user's own profile, by its `rest`."""
_TERM = "xterm-256color"  # the terminal type that the emulated screen implements


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the size of the terminal, and notes on unsupported options.

    Raises PTY_NOT_AVAILABLE without the extra, CONFIG_ERROR for an invalid profile.
    """
    require_extra()
    profile_setting = environment.environ.get(PROFILE_VARIABLE, "")
    profile_path = profile_setting if profile_setting and profile_setting not in built_in() else None
    profile = (
        read_profile(Path(profile_path))
        if profile_path
        else built_in().get(profile_setting) or profile_for(environment.executable)
    )
    flags = (profile.model_flag.replace(MODEL, options.model),) if options.model and profile.model_flag else ()
    return SpawnArgs(
        argv=(environment.executable, *environment.arguments, *flags),
        protocol=CUSTOM[profile.rest] if profile_path else profile.name,
        env={"TERM": _TERM, **({PROFILE_VARIABLE: profile_path} if profile_path else {})},
        unset_env=("COLUMNS", "LINES"),  # those of our own terminal would override the size of this one
        terminal=TerminalSize(),
        counts_turns=False,
        notes=tuple(_notes(options, profile)),
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec's context; it contains the profile unless that is built in."""
    context = default_context("terminal", options, spawn)
    profile_path = spawn.env.get(PROFILE_VARIABLE)
    if profile_path is None:
        return context
    return replace(context, settings={"profile": to_builtins(read_profile(Path(profile_path)))})


def _notes(options: RunOptions, profile: Profile) -> list[str]:
    unsupported = {
        "system_prompt": options.system_prompt,
        "thinking_effort": options.thinking_effort,
        "thinking_budget_tokens": options.thinking_budget_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "max_output_tokens": options.output_limit,
        "max_model_calls": options.max_model_calls,
        "no_session": options.no_session or None,
        "model": None if profile.model_flag else options.model,
    }
    return [f"terminal programs have no setting for {name}: ignored"
            for name, value in unsupported.items() if value is not None]  # fmt: skip
