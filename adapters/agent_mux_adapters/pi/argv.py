"""Run options to pi's command line: `--mode json` for one prompt without approvals or questions, else `--mode rpc`.

Every flag was tried on 1.6.0, 0.87.1 and 0.73.1. A flag and its value are two arguments: pi does not accept
`--flag=value`, and takes the next argument as the value, even if it begins with a dash.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.pi import extension
from agent_mux_adapters._dialects.pi.argv import (
    UNSUPPORTED_OPTIONS,
    attachment_flags,
    count_unsent,
    image_files,
    images_of,
    needs_rpc,
    prompt_of,
    requires_approval,
)

JSON = "json"
RPC = "rpc"
SYSTEM_PROMPT_FILE = "system-prompt.md"


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the files and the notes for the options."""
    two_way = needs_rpc(options)
    temp_dir = environment.temp_dir
    flags = ["--mode", RPC] if two_way else ["--print", "--mode", JSON]
    flags += _flags(options, temp_dir)
    images = image_files(options) if two_way else {}
    files = {
        extension.FILE: extension.extension_code(
            asks=requires_approval(options),
            asks_everything=options.asks_everything,
            images=images,
            allowed_tools=options.allowed_tools,
            disallowed_tools=options.disallowed_tools,
            mcp_servers=options.mcp_servers,
        )
    }
    flags += ["--extension", f"{temp_dir}/{extension.FILE}"]
    if options.system_prompt is not None:
        files[SYSTEM_PROMPT_FILE] = options.system_prompt
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
    sent = prompt_of(options, except_for=image_files(options)) if spawn.protocol == RPC else None
    return replace(default_context("pi", options, spawn), prompt=sent, images=images_of(options))


def _flags(options: RunOptions, temp_dir: str) -> Iterator[str]:
    if options.model is not None:
        yield from ("--model", options.model)
    thinking = options.thinking_override.get("level", options.thinking_effort)
    if thinking is not None:
        yield from ("--thinking", str(thinking))
    if options.session_id is not None:
        yield from ("--session", options.session_id)
    if options.fork_session_id is not None:
        yield from ("--fork", options.fork_session_id)
    if options.no_session:
        yield "--no-session"
    if options.system_prompt is not None:
        flag = "--system-prompt" if options.system_prompt_mode == "replace" else "--append-system-prompt"
        yield from (flag, f"{temp_dir}/{SYSTEM_PROMPT_FILE}")


def _notes(options: RunOptions) -> Iterator[str]:
    for name in (*UNSUPPORTED_OPTIONS, "temperature", "top_p", "top_k", "thinking_budget_tokens"):
        if getattr(options, name) is not None:
            yield f"pi has no setting for {name}: ignored."
    if options.thinking_effort == "max":
        yield "pi before 0.80 has no thinking effort 'max' and keeps its default."
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "pi cannot prepend to its system prompt; the text was appended."
    for server in options.mcp_servers:
        if server.transport == "sse":
            yield f"pi has no SSE transport: the MCP server {server.name} is tried over streamable HTTP."
    unsent_count = count_unsent(options.attachments)
    if unsent_count:
        yield f"{unsent_count} attachments were omitted: pi takes files by path, and inline images."
