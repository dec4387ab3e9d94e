"""How OpenClaw is started: `openclaw agent exec` for one prompt without permission requests, else ACP.

`agent exec` stores nothing, runs beside a gateway and beside other processes of its kind, and reports its usage and the
reason of a failure exactly; but it reports only the last text, and no tool calls. ACP reports tool calls, streams, asks
for permissions and resumes sessions; it needs a gateway of its own (see `launching`), and OpenClaw allows only one
gateway for a state directory.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from agent_mux.sdk import CapabilityError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.acp.requests import acp_context
from agent_mux_adapters.openclaw.configuration import DEFAULTS, run_config, users_config

EXEC = "exec-json"
ACP = "acp"
RUN_FILE = "run.json"
DEFAULTS_FILE = "defaults.json"
_STATE_FOLDER = "state"
LAUNCHER = (
    "-IS",  # ignore Python's environment variables and installed packages
    "-c",
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('launching', run_name='__main__')",
    str(Path(__file__).parent),
)
"""Arguments of Python that run the package `launching` beside this file, without the rest of the adapter."""
THINKING_KEYS = ("level",)
"""Keys of `thinking_override`: the value of `--thinking`, which has more levels than ours."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--json", "--message-file"), "agent-mux reads its output"),
    "--cwd": "use the option `cwd`",
    "--timeout": "use the option `timeout`",
    "--model": "use the option `model`",
    "--fallback": "use the option `fallback_model`",
    "--thinking": "use the options `thinking_effort` and `thinking_override`",
}
"""Flags that `extra_args` may not have, and what to use instead."""
_UNSUPPORTED = ("top_p", "top_k", "thinking_budget_tokens")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the files and the protocol for these options."""
    return _acp_spawn_args(options, environment) if needs_gateway(options) else _exec_spawn_args(options, environment)


def needs_gateway(options: RunOptions) -> bool:
    """Return whether the run needs more than `agent exec` supports.

    `agent exec` asks for nothing, streams nothing, deletes its session, and reports neither model calls to count nor
    tool calls, which hooks observe. It has no flags for MCP servers, sampling and images, and rejects an effort that a
    model lacks, as the highest may be.
    """
    return (
        options.approval_mode != "yolo"
        or options.interactive
        or options.stream is True
        or options.on_approval_request is not None
        or options.on_input_required is not None
        or options.session_id is not None
        or options.session_name is not None
        or bool(options.mcp_servers)
        or bool(options.attachments)
        or any(value is not None for value in (options.temperature, options.output_limit))
        or options.max_model_calls is not None
        or options.thinking_effort == "max"
        or bool(options.disallowed_tools or options.native_options or options.hooks)
        or (options.fallback_model is not None and options.model is None)
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the context of the codec; with a prompt only where the codec sends it."""
    if spawn.protocol == ACP:
        # MCP servers are in the run's configuration: the bridge takes none.
        effort = options.thinking_override.get("level", options.thinking_effort)
        return replace(acp_context("openclaw", options, spawn), mcp_servers=(), thinking_effort=effort)
    return replace(default_context("openclaw", options, spawn), prompt=None)


def _exec_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    flags = ["--json", "--message-file=-", f"--cwd={options.working_directory()}"]
    flags.append("--timeout=0")  # its default is ten minutes; time limits are enforced by the runner
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.fallback_model is not None:
        flags.append(f"--fallback={options.fallback_model}")
    thinking = options.thinking_override.get("level", options.thinking_effort)
    if thinking is not None:
        flags.append(f"--thinking={thinking}")
    return SpawnArgs(
        argv=(environment.executable, "agent", "exec", *flags),
        protocol=EXEC,
        # It keeps 2 MB of state there and leaves them behind when a signal ends it; the runner deletes them.
        env={"TMPDIR": environment.temp_dir},
        stdin_text=_prompt_with_system_prompt(options),
        notes=tuple(_notes(options)),
    )


def _acp_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    flags = [
        f"--openclaw={environment.executable}",
        f"--config={environment.temp_dir}/{RUN_FILE}",
        f"--users-config={users_config(environment.environ)}",
    ]
    if options.extra_args:
        hint = "only its one-shot mode has a command line, and this run needs its gateway; use `native_options`"
        raise CapabilityError("openclaw", "the option extra_args in this run", options.model, hint=hint)
    if options.no_session:
        flags.append(f"--state-dir={environment.temp_dir}/{_STATE_FOLDER}")
    return SpawnArgs(
        argv=(sys.executable, *LAUNCHER, *flags),
        protocol=ACP,
        files={RUN_FILE: json.dumps(run_config(options)), DEFAULTS_FILE: json.dumps(DEFAULTS)},
        counts_turns=False,
        notes=(*_notes(options), *_acp_notes(options)),
    )


def _prompt_with_system_prompt(options: RunOptions) -> str:
    """Put the system prompt before the prompt: there is no flag for it."""
    return "\n\n".join(part for part in (options.system_prompt, options.prompt_text) if part)


def _notes(options: RunOptions) -> Iterator[str]:
    for name in _UNSUPPORTED:
        if getattr(options, name) is not None:
            yield f"openclaw has no setting for {name}: ignored"
    if options.system_prompt is not None:
        yield "openclaw builds its own system prompt: system_prompt is put before the prompt"
    if options.output_schema is not None:
        yield "openclaw accepts no output schema: ignored"


def _acp_notes(options: RunOptions) -> Iterator[str]:
    if options.approval_mode == "prompt":
        yield "openclaw asks about commands only: its file tools change the workspace unasked"
    if options.approval_mode == "deny":
        yield "openclaw asks about commands only: in mode 'deny' it runs without the tools that change files"
    if options.no_session:
        yield "openclaw stores logins with its sessions: without one it has only keys of configuration and environment"
