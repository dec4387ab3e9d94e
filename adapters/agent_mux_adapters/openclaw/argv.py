"""How OpenClaw is started: `openclaw agent exec` for a prompt that nobody has to answer for, else ACP.

`agent exec` keeps nothing, works beside a gateway and any number of its like, and tells exactly what it used and why it
failed; but it tells only the last text, and none of the tools. ACP tells the tools and streams, asks, and goes on with
older sessions; it needs a gateway of its own (see `launching`), of which there can be one for a state directory.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from agent_mux.adapter import CodecContext, SpawnArgs, SpawnEnvironment, default_context
from agent_mux.options import RunOptions
from agent_mux_adapters._dialects.acp.requests import acp_context
from agent_mux_adapters.openclaw.run_config import DEFAULTS, run_config, users_config

EXEC = "exec-json"
ACP = "acp"
RUN_FILE = "run.json"
DEFAULTS_FILE = "defaults.json"
STATE = "state"
LAUNCHER = (
    "-IS",  # neither what the environment says about Python nor installed packages concern it
    "-c",
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('launching', run_name='__main__')",
    str(Path(__file__).parent),
)
"""Runs the package `launching` beside us, without the rest of the adapter."""
_NO_KNOB = ("top_p", "top_k", "thinking_budget_tokens")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The command line, the files and the protocol for these options."""
    return _acp(options, environment) if needs_gateway(options) else _exec(options, environment)


def needs_gateway(options: RunOptions) -> bool:
    """Whether the run needs more than `agent exec` has.

    It asks nothing, streams nothing, forgets its session and does not tell its model calls, to be counted. It has no
    flags for MCP servers, sampling and images, and does not say which efforts a model has: the highest may be missing.
    """
    return (
        options.approval_mode != "yolo"
        or options.interactive
        or options.stream is True
        or options.on_approval_request is not None
        or options.on_input_required is not None
        or options.session_id is not None
        or bool(options.mcp_servers)
        or bool(options.attachments)
        or any(value is not None for value in (options.temperature, options.output_limit))
        or options.max_turns is not None
        or options.thinking_effort == "max"
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What the codec knows: the prompt only where it sends it."""
    if spawn.protocol == ACP:
        # MCP servers are in the run's configuration: the bridge takes none.
        return replace(acp_context("openclaw", options, spawn), mcp_servers=())
    return replace(default_context("openclaw", options, spawn), prompt=None)


def _exec(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    flags = ["--json", "--message-file=-", f"--cwd={options.working_directory()}"]
    flags.append("--timeout=0")  # else it ends after ten minutes; the mux has its own
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.thinking_effort is not None:
        flags.append(f"--thinking={options.thinking_effort}")
    return SpawnArgs(
        argv=(environment.executable, "agent", "exec", *flags),
        protocol=EXEC,
        # It keeps its state there, 2 MB, and does not take it away when a signal ends it; the mux does.
        env={"TMPDIR": environment.temp_dir},
        stdin_text=_whole_prompt(options),
        notes=tuple(_notes(options)),
    )


def _acp(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    flags = [
        f"--openclaw={environment.executable}",
        f"--config={environment.temp_dir}/{RUN_FILE}",
        f"--users-config={users_config(environment.environ)}",
    ]
    if options.no_session:
        flags.append(f"--state-dir={environment.temp_dir}/{STATE}")
    return SpawnArgs(
        argv=(sys.executable, *LAUNCHER, *flags),
        protocol=ACP,
        files={RUN_FILE: json.dumps(run_config(options)), DEFAULTS_FILE: json.dumps(DEFAULTS)},
        counts_turns=False,
        notes=(*_notes(options), *_notes_on_acp(options)),
    )


def _whole_prompt(options: RunOptions) -> str:
    """There is no flag for a system prompt: it comes before the prompt."""
    return "\n\n".join(part for part in (options.system_prompt, options.prompt_text) if part)


def _notes(options: RunOptions) -> Iterator[str]:
    for name in _NO_KNOB:
        if getattr(options, name) is not None:
            yield f"openclaw has no setting for {name}: ignored"
    if options.system_prompt is not None:
        yield "openclaw makes its system prompt itself: system_prompt is put before the prompt"
    if options.output_schema is not None:
        yield "openclaw takes no output schema: ignored"


def _notes_on_acp(options: RunOptions) -> Iterator[str]:
    if options.approval_mode == "prompt":
        yield "openclaw asks about commands only: its file tools work in the workspace unasked"
    if options.approval_mode == "deny":
        yield "openclaw asks about commands only: in mode 'deny' it works without the tools that change files"
    if options.no_session:
        yield "openclaw keeps logins with its sessions: without one it has only keys from configuration and environment"
