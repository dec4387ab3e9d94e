"""Run options to omp's command line: `--mode=json` for one prompt without approvals or questions, else `--mode=rpc`.

Every flag was tried on 18.2.3. Options without a flag go into a configuration file for this run, which omp merges over
the user's own.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.mcp_servers import write_server
from agent_mux_adapters._dialects.pi import extension
from agent_mux_adapters._dialects.pi.argv import (
    UNSUPPORTED_OPTIONS,
    attachment_flags,
    count_unsent,
    images_of,
    needs_rpc,
    prompt_of,
    requires_approval,
)
from agent_mux_adapters._dialects.tolerant import as_json

JSON = "json"
RPC = "rpc"
RPC_UI = "rpc-ui"
"""The protocol of rpc mode, for a client that answers questions: only then the model has the tool `ask`."""
CONFIG_FILE = "config.yml"
MCP_FILE = ".mcp.json"
SYSTEM_PROMPT_FILE = "system-prompt.md"
# A title would cost another model call.
COMMON = ("--no-title",)
LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the files and the notes for the options."""
    two_way = needs_rpc(options)
    files = {extension.FILE: extension.extension_code(asks=False), **_files(options)}
    flags = [f"--mode={RPC_UI if _may_be_asked(options) else RPC}"] if two_way else ["--print", f"--mode={JSON}"]
    flags += [*COMMON, f"--approval-mode={'always-ask' if requires_approval(options) else 'yolo'}"]
    flags += [*_flags(options, environment.temp_dir), f"--extension={environment.temp_dir}/{extension.FILE}"]
    if CONFIG_FILE in files:
        flags.append(f"--config={environment.temp_dir}/{CONFIG_FILE}")
    if MCP_FILE in files:
        # The folder is loaded as an extension without code: omp finds only its MCP servers.
        flags.append(f"--extension={environment.temp_dir}")
    if not two_way:
        flags += attachment_flags(options)
    return SpawnArgs(
        argv=(environment.executable, *flags),
        protocol=RPC if two_way else JSON,
        stdin_text=None if two_way else options.prompt_text,
        files=files,
        counts_turns=False,
        notes=tuple(_notes(options)),
    )


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec's context; it has the prompt only in rpc mode, where the codec sends it."""
    sent = prompt_of(options) if spawn.protocol == RPC else None
    return replace(default_context("omp", options, spawn), prompt=sent, images=images_of(options))


def _may_be_asked(options: RunOptions) -> bool:
    # In rpc-ui mode omp connects to MCP servers only after it has started to answer the first prompt.
    answers = options.approval_mode == "prompt" or options.on_input_required is not None
    return answers and not options.mcp_servers


def _flags(options: RunOptions, temp_dir: str) -> Iterator[str]:
    if options.model is not None:
        yield f"--model={options.model}"
    thinking = options.thinking_override.get("level", options.thinking_effort)
    if thinking is not None or options.thinking_budget_tokens is not None:
        yield f"--thinking={thinking or 'high'}"
    yield from (f"--add-dir={path}" for path in options.add_dirs)
    if options.session_id is not None:
        yield f"--resume={options.session_id}"
    if options.fork_session_id is not None:
        yield f"--fork={options.fork_session_id}"
    if options.no_session:
        yield "--no-session"
    if options.system_prompt is not None:
        flag = "--system-prompt" if options.system_prompt_mode == "replace" else "--append-system-prompt"
        yield f"{flag}={temp_dir}/{SYSTEM_PROMPT_FILE}"


def _files(options: RunOptions) -> dict[str, str]:
    """Return the files for texts that may be long or secret and must not be on the command line."""
    files = {}
    settings = _settings(options)
    if settings:
        files[CONFIG_FILE] = as_json(settings)  # JSON is YAML
    if options.system_prompt is not None:
        files[SYSTEM_PROMPT_FILE] = options.system_prompt
    if options.mcp_servers:
        files[MCP_FILE] = as_json({"mcpServers": {server.name: write_server(server) for server in options.mcp_servers}})
    return files


def _settings(options: RunOptions) -> dict[str, Any]:
    wanted = {"temperature": options.temperature, "topP": options.top_p, "topK": options.top_k}
    settings: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if options.thinking_budget_tokens is not None:
        settings["thinkingBudgets"] = dict.fromkeys(LEVELS, options.thinking_budget_tokens)
    if options.fallback_model is not None:
        settings["retry"] = {"fallbackChains": {"default": [options.fallback_model]}}
    allowed = {} if options.asks_everything else dict.fromkeys(options.allowed_tools, "allow")
    if rules := {**allowed, **dict.fromkeys(options.disallowed_tools, "deny")}:
        settings["tools"] = {"approval": rules}
    return merge_native_options("omp", settings, options.native_options)


def _notes(options: RunOptions) -> Iterator[str]:
    for name in UNSUPPORTED_OPTIONS:
        if getattr(options, name) is not None:
            yield f"omp has no setting for {name}: ignored."
    if options.thinking_budget_tokens is not None:
        yield "omp applies a thinking budget only with providers that support one."
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "omp cannot prepend to its system prompt; the text was appended."
    if options.mcp_servers and options.on_input_required is not None:
        yield "omp asks no questions in a run with its own MCP servers."
    unsent_count = count_unsent(options.attachments)
    if unsent_count:
        yield f"{unsent_count} attachments were omitted: omp takes files by path, and inline images."
