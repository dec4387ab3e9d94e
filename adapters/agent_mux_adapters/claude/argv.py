"""Run options to the command line of Claude Code. Every flag was tried on 2.1.330.

One-shot (`-p`, the prompt on stdin) when no approval or question can occur; otherwise two-way (stream-json on stdin,
permissions over the control protocol). The user's own configuration (settings, hooks, MCP servers, CLAUDE.md) stays in
effect: `mcp_servers` are added to it, and a tool that the user's rules allow needs no approval, not even in mode
`deny`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options
from agent_mux.sdk.options import ApprovalMode, RunOptions
from agent_mux_adapters._dialects.mcp_servers import write_server
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters._dialects.tolerant import as_json
from agent_mux_adapters.claude.hook_events import TYPES as HOOK_EVENTS

MCP_FILE = "mcp.json"
SYSTEM_PROMPT_FILE = "system-prompt.txt"
SETTINGS_FILE = "settings.json"

COMMON = ("-p", "--output-format=stream-json", "--verbose", "--include-partial-messages")
TALKING = ("--input-format=stream-json", "--permission-prompt-tool=stdio", "--replay-user-messages")
FILE_CHECKPOINTS: Mapping[str, str] = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
"""Saves the files that Claude edits, as it does in a terminal, so that a session can be rewound with them."""
STATE_EVENTS = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}
"""Makes the CLI report when it is idle, the only sign that no further turn begins by itself."""

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

PERMISSION_MODES: Mapping[ApprovalMode, str] = {
    "yolo": "default", "prompt": "default", "deny": "default", "plan": "plan",
}  # fmt: skip
"""The CLI's permission mode of each approval mode, where it may not bypass permissions."""
THINKING_KEYS = ("type", "budget_tokens", "display", "effort")
"""Keys of `thinking_override`: those of the API's `thinking`, and the effort, which has more levels than ours."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("-p", "--print", "--output-format", "--input-format", "--verbose"), "agent-mux reads its output"),
    **dict.fromkeys(("--permission-prompt-tool", "--permission-prompts", "--replay-user-messages"),
                    "agent-mux answers its requests"),
    **dict.fromkeys(("--permission-mode", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"),
                    "use the option `approval_mode`"),
    **dict.fromkeys(("--resume", "-r", "--continue", "-c", "--session-id"), "use the option `session_id`"),
    "--fork-session": "use the option `fork_session_id`",
    "--no-session-persistence": "use the option `no_session`",
    "--model": "use the option `model`",
    "--fallback-model": "use the option `fallback_model`",
    **dict.fromkeys(("--effort", "--thinking", "--thinking-display", "--max-thinking-tokens"),
                    "use the options `thinking_effort` and `thinking_override`"),
    "--max-turns": "use the option `max_model_calls`",
    "--json-schema": "use the option `output_schema`",
    "--settings": "use the option `native_options`",
    **dict.fromkeys(("--allowedTools", "--allowed-tools"), "use the option `allowed_tools`"),
    **dict.fromkeys(("--disallowedTools", "--disallowed-tools"), "use the option `disallowed_tools`"),
    "--add-dir": "use the option `add_dirs`",
    "--mcp-config": "use the option `mcp_servers`",
    **dict.fromkeys(("--system-prompt", "--system-prompt-file", "--append-system-prompt",
                     "--append-system-prompt-file"), "use the option `system_prompt`"),
    "--forward-subagent-text": "use the option `include_subagent_events`",
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""
NO_KNOB = ("temperature", "top_p", "top_k")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, environment, files and notes for these options."""
    bypass = _may_bypass(options, environment)
    settings = merge_native_options("claude", _settings(options, environment), options.native_options)
    two_way = _needs_answers(options) or (options.approval_mode == "yolo" and not bypass)
    flags = [*COMMON, *(TALKING if two_way else ())]
    flags.append(f"--permission-mode={'bypassPermissions' if bypass else PERMISSION_MODES[options.approval_mode]}")
    flags.extend(_session_flags(options))
    flags.extend(_model_flags(options))
    flags.extend(_tool_flags(options))
    flags.extend(_file_flags(options, environment.temp_dir))
    files = _files(options)
    if options.native_options:  # in a file, because native options may be secret
        files[SETTINGS_FILE] = as_json(settings)
        flags.append(f"--settings={environment.temp_dir}/{SETTINGS_FILE}")
    elif settings:
        flags.append(f"--settings={as_json(settings)}")
    return SpawnArgs(
        argv=(environment.executable, *flags),
        protocol=TWO_WAY if two_way else ONE_SHOT,
        env={**_limits(options), **FILE_CHECKPOINTS, **(STATE_EVENTS if two_way else {})},
        stdin_text=None if two_way else prompt_of(options),
        files=files,
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
    yield from _thinking_flags(options)
    if options.fallback_model is not None:
        yield f"--fallback-model={options.fallback_model}"
    if options.max_model_calls is not None:
        yield f"--max-turns={options.max_model_calls}"
    if options.output_schema is not None:
        yield f"--json-schema={as_json(options.output_schema)}"
    if options.include_subagent_events:
        yield "--forward-subagent-text"


def _thinking_flags(options: RunOptions) -> Iterator[str]:
    """Return the flags of the thinking settings. Without `--effort`, a budget counts for models that have one."""
    override = options.thinking_override
    has_budget = options.thinking_budget_tokens is not None or "budget_tokens" in override
    effort = override.get("effort", None if has_budget else options.thinking_effort)
    if effort is not None:
        yield f"--effort={effort}"
    for key, flag in (("type", "--thinking"), ("display", "--thinking-display")):
        if key in override:
            yield f"{flag}={override[key]}"


def _tool_flags(options: RunOptions) -> Iterator[str]:
    for flag, values in (
        ("--allowedTools", options.allowed_tools),
        ("--disallowedTools", options.disallowed_tools),
        ("--add-dir", options.add_dirs),
    ):
        yield from (f"{flag}={value}" for value in values)


def _settings(options: RunOptions, environment: SpawnEnvironment) -> dict[str, Any]:
    """Return the settings of the CLI that agent-mux makes for the run."""
    settings: dict[str, Any] = {"permissions": {"ask": ASKING_TOOLS}} if options.asks_everything else {}
    if environment.hook_commands:
        from agent_mux_adapters._dialects.hooks import HOOK_TIMEOUT  # noqa: PLC0415  # most runs have no hooks

        settings["hooks"] = {
            event: [{"hooks": [{"type": "command", "command": command, "timeout": HOOK_TIMEOUT}]}]
            for hook_type, command in environment.hook_commands.items()
            for event in HOOK_EVENTS[hook_type]
        }
    return settings


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
    budget = options.thinking_override.get("budget_tokens", options.thinking_budget_tokens)
    if budget is not None:
        limits["MAX_THINKING_TOKENS"] = str(budget)
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
