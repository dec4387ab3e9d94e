"""The command line of Qwen Code for the options of a run. Pure functions; every flag was tested with 0.24.4.

Runs without interactions use one-shot with the prompt on stdin. Runs with interactions, or with a setting that only the
handshake accepts, use two-way. Runs with images use the Agent Client Protocol, the only one that accepts them.
"""

from collections.abc import Iterator
from typing import Any

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import McpServer, RunOptions
from agent_mux_adapters._dialects.acp import acp_context
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters._dialects.tolerant import as_json

ACP = "acp"
MCP_FILE = "mcp.json"
SCHEMA_FILE = "schema.json"
PRINTING = ("--output-format=stream-json", "--include-partial-messages")
FLAGS = {
    ONE_SHOT: PRINTING,
    TWO_WAY: ("--input-format=stream-json", *PRINTING),
    ACP: ("--acp",),
}
QUIET = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1"}
NOT_IN_ACP = ("output_schema", "thinking_effort")
UNSUPPORTED_OPTIONS = ("temperature", "top_p", "top_k", "thinking_budget_tokens")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, files and notes for these options."""
    protocol = protocol_of(options)
    mode = "yolo" if options.approval_mode == "yolo" and options.on_approval_request is None else "default"
    flags = (*FLAGS[protocol], f"--approval-mode={mode}", *_flags(options, environment.temp_dir))
    return SpawnArgs(
        argv=(environment.executable, *flags),
        protocol=protocol,
        env=QUIET,
        stdin_text=options.prompt_text if protocol == ONE_SHOT else None,
        files=_files(options),
        counts_turns=protocol != ACP,
        notes=tuple(_notes(options)),
    )


def protocol_of(options: RunOptions) -> str:
    """Return the cheapest protocol that supports the options."""
    if options.attachments:
        return ACP
    may_ask = options.on_approval_request is not None or options.on_input_required is not None
    if options.interactive or options.approval_mode != "yolo" or may_ask or options.thinking_effort is not None:
        return TWO_WAY
    return ONE_SHOT


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the context of the codec."""
    make = acp_context if spawn.protocol == ACP else default_context
    return make("qwen", options, spawn)


def _flags(options: RunOptions, temp_dir: str) -> Iterator[str]:
    if protocol_of(options) != ACP:
        yield from _flags_of_session(options, temp_dir)
    if options.no_session:
        yield "--chat-recording=false"
    if options.model is not None:
        yield f"--model={options.model}"
    if options.max_model_calls is not None:
        yield f"--max-session-turns={options.max_model_calls}"
    if options.system_prompt is not None:
        flag = "system-prompt" if options.system_prompt_mode == "replace" else "append-system-prompt"
        yield f"--{flag}={options.system_prompt}"


def _flags_of_session(options: RunOptions, temp_dir: str) -> Iterator[str]:
    """Yield flags of a session; over the Agent Client Protocol, the client sends these settings instead."""
    session = options.session_id or options.fork_session_id
    if session is not None:
        yield f"--resume={session}"
    if options.fork_session_id is not None:
        yield "--fork-session"
    if options.mcp_servers:
        yield f"--mcp-config={temp_dir}/{MCP_FILE}"
    if options.output_schema is not None:
        yield f"--json-schema=@{temp_dir}/{SCHEMA_FILE}"


def _files(options: RunOptions) -> dict[str, str]:
    files: dict[str, str] = {}
    if protocol_of(options) == ACP:
        return files
    if options.mcp_servers:
        servers = {server.name: _mcp_entry(server) for server in options.mcp_servers}
        files[MCP_FILE] = as_json({"mcpServers": servers})
    if options.output_schema is not None:
        files[SCHEMA_FILE] = as_json(dict(options.output_schema))
    return files


def _mcp_entry(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    url_field = "url" if server.transport == "sse" else "httpUrl"
    return {url_field: server.url, "headers": dict(server.headers)}


def _notes(options: RunOptions) -> Iterator[str]:
    if protocol_of(options) == ACP:
        for name in NOT_IN_ACP:
            if getattr(options, name) is not None:
                yield f"qwen takes no {name} together with attachments; it was ignored."
    for name in UNSUPPORTED_OPTIONS:
        if getattr(options, name) is not None:
            yield f"qwen has no setting for {name}; it was ignored."
    if options.output_limit is not None:
        yield "qwen has no setting for max_output_tokens; it was ignored."
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "qwen cannot put a text before its system prompt; it was appended."
