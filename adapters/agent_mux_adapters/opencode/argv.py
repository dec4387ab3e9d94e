"""How OpenCode is started: its server behind our bridge, or `opencode run` for an answer that is wanted whole."""

import sys
from pathlib import Path

from agent_mux.adapter import CodecContext, SpawnArgs, SpawnEnvironment
from agent_mux.options import RunOptions
from agent_mux_adapters._dialects.acp import acp_context
from agent_mux_adapters.opencode.config import VARIABLE, agent_settings, config_of, is_readable

RUN = "run-json"
SERVE = "serve"
ACP = "acp"
BRIDGE = Path(__file__).with_name("bridge.py")
INSTRUCTIONS_FILE = "instructions.md"
_OUTPUT_LIMIT = "OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX"


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The command line, the environment and the protocol for these options."""
    return _serve(options, environment) if needs_server(options) else _run(options, environment)


def needs_server(options: RunOptions) -> bool:
    """Whether the run needs more than `opencode run` has.

    It refuses whatever needs permission, streams nothing, tells no retries, goes on for ever where the context is too
    long, sends images as text, and cannot forget its session.
    """
    return (
        options.stream is not False
        or options.approval_mode != "yolo"
        or options.interactive
        or options.on_approval_request is not None
        or options.on_input_required is not None
        or options.output_schema is not None
        or options.no_session
        or bool(options.attachments)
    )


def opencode_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What the codec knows: images come as `data:` URLs, other files as `file:` ones."""
    return acp_context("opencode", options, spawn)


def _serve(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    bridge = (sys.executable, "-I", "-S", str(BRIDGE))
    return SpawnArgs(
        argv=(*bridge, environment.executable, options.working_directory()),
        protocol=SERVE,
        env=_env(options, environment, ()),
        counts_turns=False,
        notes=_notes(options, environment),
    )


def _run(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    files = {}
    if options.system_prompt is not None and options.system_prompt_mode != "replace":
        files[INSTRUCTIONS_FILE] = options.system_prompt
    flags = ["--format=json", "--thinking", "--auto"]
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.thinking_effort is not None:
        flags.append(f"--variant={options.thinking_effort}")
    before = options.session_id or options.fork_session_id
    if before is not None:
        flags.append(f"--session={before}")
    if options.fork_session_id is not None:
        flags.append("--fork")
    return SpawnArgs(
        argv=(environment.executable, "run", *flags),
        protocol=RUN,
        env=_env(options, environment, [f"{environment.temp_dir}/{name}" for name in files]),
        stdin_text=options.prompt_text,
        files=files,
        counts_turns=False,
        notes=_notes(options, environment),
    )


def _env(
    options: RunOptions, environment: SpawnEnvironment, instructions: list[str] | tuple[str, ...]
) -> dict[str, str]:
    env = {}
    config = config_of(options, environment.environ, instructions)
    if config is not None:
        env[VARIABLE] = config
    if options.output_limit is not None:
        env[_OUTPUT_LIMIT] = str(options.output_limit)
    return env


def _notes(options: RunOptions, environment: SpawnEnvironment) -> tuple[str, ...]:
    unheard = {"top_k": options.top_k, "thinking_budget_tokens": options.thinking_budget_tokens}
    notes = [f"opencode has no setting for {name}: ignored" for name, value in unheard.items() if value is not None]
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        notes.append("opencode puts further instructions after its own: system_prompt_mode 'prepend' means 'append'")
    if agent_settings(options):
        notes.append("opencode has these settings only for an agent: the run uses its agent 'build'")
    if options.thinking_effort is not None:
        notes.append("opencode knows efforts as variants of a model: one that the model has not is ignored")
    if options.model is not None and "/" not in options.model:
        notes.append(f"opencode names models as provider/model: it may not know {options.model!r}")
    if not is_readable(environment.environ):
        notes.append(f"{VARIABLE} of the environment is no plain JSON: it is not used")
    return tuple(notes)
