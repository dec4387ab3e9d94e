"""Run options to the command line of Claude Code. Every flag was tried on 2.1.330.

One-shot (`-p`, the prompt on stdin) when no approval or question can occur; otherwise two-way (stream-json on stdin,
permissions over the control protocol). The user's own configuration (settings, hooks, MCP servers, CLAUDE.md) stays in
effect: `mcp_servers` are added to it, and a tool that the user's rules allow needs no approval, not even in mode
`deny`.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.mcp_servers import write_server
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters._dialects.tolerant import as_json

MCP_FILE = "mcp.json"
SYSTEM_PROMPT_FILE = "system-prompt.txt"

COMMON = ("-p", "--output-format=stream-json", "--verbose", "--include-partial-messages")
TALKING = ("--input-format=stream-json", "--permission-prompt-tool=stdio", "--replay-user-messages")
STATE_EVENTS = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}
"""Makes the CLI report when it is idle, the only sign that no further turn begins by itself."""

NOT_INHERITED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""Variables that mark programs started inside a Claude Code session; this run is a session of its own."""

ASKING_TOOLS = (
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "Skill",
    "Task",
    "WebFetch",
    "WebSearch",
    "Write",
)
"""Tools that need approval when policy rules decide; without this setting the CLI reads any file of the project."""

NO_KNOB = ("temperature", "top_p", "top_k")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, environment, files and notes for these options."""
    bypass = _may_bypass(options, environment)
    two_way = _needs_answers(options) or (options.approval_mode == "yolo" and not bypass)
    flags = [*COMMON, *(TALKING if two_way else ())]
    flags.append(f"--permission-mode={'bypassPermissions' if bypass else 'default'}")
    flags.extend(_session_flags(options))
    flags.extend(_model_flags(options))
    flags.extend(_file_flags(options, environment.temp_dir))
    return SpawnArgs(
        argv=(environment.executable, *flags),
        protocol=TWO_WAY if two_way else ONE_SHOT,
        env={**_limits(options), **(STATE_EVENTS if two_way else {})},
        unset_env=NOT_INHERITED,
        stdin_text=None if two_way else prompt_of(options),
        files=_files(options),
        notes=tuple(_notes(options)),
    )


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return what the codec needs; the prompt only if the codec sends it."""
    sent = prompt_of(options) if spawn.protocol == TWO_WAY else None
    return replace(default_context("claude", options, spawn), prompt=sent)


def prompt_of(options: RunOptions) -> str:
    """Return the prompt with mentions of attached files.

    The CLI reads `@"path"` into the conversation, including images.
    """
    mentions = [f'@"{path}"' for path in _attached_paths(options)]
    return "\n\n".join(part for part in (options.prompt_text, "\n".join(mentions)) if part)


def _attached_paths(options: RunOptions) -> list[str]:
    return [a.file_path for a in options.attachments if a.file_path is not None and '"' not in a.file_path]


def _may_bypass(options: RunOptions, environment: SpawnEnvironment) -> bool:
    """Return whether the CLI may run every tool without approval.

    As root it refuses to, unless `IS_SANDBOX` declares a sandbox.
    """
    trusted = not environment.is_root or environment.environ.get("IS_SANDBOX") == "1"
    return options.approval_mode == "yolo" and options.on_approval_request is None and trusted


def _needs_answers(options: RunOptions) -> bool:
    callbacks = options.on_approval_request is not None or options.on_input_required is not None
    return options.interactive or options.approval_mode != "yolo" or callbacks


def _session_flags(options: RunOptions) -> Iterator[str]:
    session = options.session_id or options.fork_session_id
    if session is not None:
        yield f"--resume={session}"
    if options.fork_session_id is not None:
        yield "--fork-session"
    if options.no_session:
        yield "--no-session-persistence"


def _model_flags(options: RunOptions) -> Iterator[str]:
    if options.model is not None:
        yield f"--model={options.model}"
    if options.thinking_effort is not None and options.thinking_budget_tokens is None:
        yield f"--effort={options.thinking_effort}"
    if options.max_model_calls is not None:
        yield f"--max-turns={options.max_model_calls}"
    if options.output_schema is not None:
        yield f"--json-schema={as_json(options.output_schema)}"
    if options.asks_everything:
        yield f"--settings={as_json({'permissions': {'ask': ASKING_TOOLS}})}"
    if options.include_subagent_events:
        yield "--forward-subagent-text"


def _file_flags(options: RunOptions, temp_dir: str) -> Iterator[str]:
    if options.system_prompt is not None:
        flag = "system-prompt-file" if options.system_prompt_mode == "replace" else "append-system-prompt-file"
        yield f"--{flag}={temp_dir}/{SYSTEM_PROMPT_FILE}"
    if options.mcp_servers:
        yield f"--mcp-config={temp_dir}/{MCP_FILE}"


def _files(options: RunOptions) -> dict[str, str]:
    """Return the files for texts that may be long or secret, which must not be on the command line."""
    files = {}
    if options.system_prompt is not None:
        files[SYSTEM_PROMPT_FILE] = options.system_prompt
    if options.mcp_servers:
        servers = {server.name: write_server(server) for server in options.mcp_servers}
        files[MCP_FILE] = as_json({"mcpServers": servers})
    return files


def _limits(options: RunOptions) -> dict[str, str]:
    limits = {}
    if options.thinking_budget_tokens is not None:
        limits["MAX_THINKING_TOKENS"] = str(options.thinking_budget_tokens)
    if options.output_limit is not None:
        limits["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(options.output_limit)
    return limits


def _notes(options: RunOptions) -> Iterator[str]:
    for name in NO_KNOB:
        if getattr(options, name) is not None:
            yield f"claude has no setting for {name}; it was ignored."
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "claude cannot put a text before its system prompt; it was appended."
    if options.thinking_budget_tokens is not None:
        yield "claude applies a thinking budget only to models without adaptive thinking."
    unsent = len(options.attachments) - len(_attached_paths(options))
    if unsent:
        yield f"{unsent} of the attachments were left out: claude takes files by path, without quotes in it."
