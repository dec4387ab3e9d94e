"""The flags of the commands that start runs, as data: they mirror `RunOptions`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_mux.cli.decorators import with_flags
from agent_mux.cli.options import (
    Compact,
    ConfigDir,
    Debug,
    NoColor,
    ProjectDir,
    Server,
    ServerTokenFile,
    seconds,
)

_TASK, _MODEL, _SESSION, _LIMITS, _TOOLS, _OUTPUT = (
    "Task",
    "Model",
    "Session",
    "Limits",
    "Permissions and tools",
    "Output",
)


def _flag(*names: str, panel: str, help: str, metavar: str | None = None, **more: Any) -> Any:  # noqa: A002  # typer's name
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False, **more)


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The values of the flags. None, False and empty mean that a flag was not given."""

    agent: Annotated[str | None, _flag("--agent", "-a", panel=_TASK, help="Agent to run (alternative to AGENT).")] = (
        None
    )
    prompt: Annotated[
        list[str] | None, _flag("--prompt", "-p", panel=_TASK, help="Prompt (repeatable; joined by blank lines).")
    ] = None
    attach: Annotated[
        list[str] | None,
        _flag("--attach", panel=_TASK, metavar="FILE|URL", help="File or image to attach (repeatable)."),
    ] = None
    command: Annotated[
        str | None,
        _flag(
            "--command",
            panel=_TASK,
            metavar="'PROGRAM ARGS...'",
            help="Command for acp/terminal; shell quoting, no shell.",
        ),
    ] = None
    interactive: Annotated[
        bool,
        _flag(
            "--interactive",
            "-i",
            panel=_TASK,
            help="Converse: each line is a prompt or /command (--json: JSON lines).",
        ),
    ] = False
    detach: Annotated[
        bool,
        _flag("--detach", "-d", panel=_TASK, help="Run in the background and print the run id (see amux runs)."),
    ] = False
    profile: Annotated[
        str | None,
        _flag(
            "--profile",
            panel=_TASK,
            metavar="NAME",
            help="Use options from this profile; flags override them.",
        ),
    ] = None
    no_profile: Annotated[bool, _flag("--no-profile", panel=_TASK, help="Ignore the configured default profile.")] = (
        False
    )
    cwd: Annotated[
        Path | None, _flag("--cwd", panel=_TASK, help="Working directory of the agent (default: current directory).")
    ] = None
    add_dir: Annotated[
        list[Path] | None,
        _flag(
            "--add-dir",
            panel=_TASK,
            metavar="DIRECTORY",
            help="Further directory in which the agent may work (repeatable).",
        ),
    ] = None
    isolation: Annotated[
        str | None,
        _flag(
            "--isolation",
            panel=_TASK,
            metavar="none|worktree",
            help="worktree: use a separate git worktree, or a copy without a repository; kept if changed.",
        ),
    ] = None
    no_carry_changes: Annotated[
        bool,
        _flag(
            "--no-carry-changes",
            panel=_TASK,
            help="Begin a separate worktree without the uncommitted changes of the repository.",
        ),
    ] = False
    setup: Annotated[
        str | None,
        _flag(
            "--setup",
            panel=_TASK,
            metavar="COMMAND",
            help="Prepare a separate worktree with this command; shell quoting, no shell.",
        ),
    ] = None
    no_track_changes: Annotated[
        bool,
        _flag(
            "--no-track-changes",
            panel=_TASK,
            help="Do not compare the git working tree before and after the run.",
        ),
    ] = False
    fail_on: Annotated[
        list[str] | None,
        _flag(
            "--fail-on",
            panel=_TASK,
            metavar="CONDITION,...",
            help="Exit with 17 if one holds: denied, tool_error, no_change, length, filtered (repeatable).",
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        _flag(
            "--env", panel=_TASK, metavar="NAME=VALUE", help="Set an environment variable for the agent (repeatable)."
        ),
    ] = None
    system: Annotated[str | None, _flag("--system", panel=_TASK, help="System prompt.")] = None
    system_mode: Annotated[
        str | None,
        _flag(
            "--system-mode",
            panel=_TASK,
            metavar="append|prepend|replace",
            help="How to combine it with the agent's own system prompt.",
        ),
    ] = None
    agents_doc: Annotated[
        Path | None,
        _flag(
            "--agents-doc", panel=_TASK, metavar="FILE", help="Extra instructions file (like AGENTS.md) for this run."
        ),
    ] = None
    skill: Annotated[
        list[str] | None,
        _flag("--skill", panel=_TASK, metavar="FOLDER", help="Skill folder (with SKILL.md) for this run (repeatable)."),
    ] = None
    output_schema: Annotated[
        Path | None,
        _flag("--output-schema", panel=_TASK, metavar="FILE", help="JSON Schema that the answer must match."),
    ] = None

    model: Annotated[str | None, _flag("--model", "-m", panel=_MODEL, help="Model name, as the agent spells it.")] = (
        None
    )
    thinking_effort: Annotated[
        str | None, _flag("--thinking-effort", panel=_MODEL, metavar="low|medium|high|max", help="Thinking effort.")
    ] = None
    thinking_budget: Annotated[
        int | None,
        _flag(
            "--thinking-budget",
            panel=_MODEL,
            metavar="TOKENS",
            help="Thinking budget (at least 1024; overrides the effort).",
        ),
    ] = None
    thinking_override: Annotated[
        list[str] | None,
        _flag(
            "--thinking-override",
            panel=_MODEL,
            metavar="KEY=VALUE",
            help="Thinking setting of the agent itself (repeatable; keys: amux capabilities AGENT).",
        ),
    ] = None
    fallback_model: Annotated[
        str | None,
        _flag(
            "--fallback-model",
            panel=_MODEL,
            metavar="MODEL",
            help="Model that the agent uses when its first one is overloaded or not available.",
        ),
    ] = None
    temperature: Annotated[
        float | None, _flag("--temperature", panel=_MODEL, help="Sampling temperature (0 to 2).")
    ] = None
    top_p: Annotated[float | None, _flag("--top-p", panel=_MODEL, help="Nucleus sampling (0 to 1).")] = None
    top_k: Annotated[int | None, _flag("--top-k", panel=_MODEL, help="Top-k sampling (at least 1).")] = None
    max_tokens: Annotated[int | None, _flag("--max-tokens", panel=_MODEL, help="Maximum output tokens.")] = None
    stream: Annotated[
        bool | None, _flag("--stream/--no-stream", panel=_MODEL, help="Stream partial text (default: where supported).")
    ] = None

    session: Annotated[str | None, _flag("--session", panel=_SESSION, metavar="ID", help="Resume this session.")] = None
    fork: Annotated[
        str | None,
        _flag("--fork", panel=_SESSION, metavar="ID", help="Start a new session from this session's history."),
    ] = None
    continue_last: Annotated[
        bool,
        _flag("--continue", panel=_SESSION, help="Resume the agent's last session in this directory."),
    ] = False
    pick_session: Annotated[
        bool,
        _flag("--pick", panel=_SESSION, help="Choose the session to resume from those in this directory."),
    ] = False
    session_name: Annotated[
        str | None,
        _flag(
            "--session-name",
            "-s",
            panel=_SESSION,
            metavar="NAME",
            help="Continue the last session of this name in this directory, else start it.",
        ),
    ] = None
    no_session: Annotated[bool, _flag("--no-session", panel=_SESSION, help="Do not store a session.")] = False

    max_model_calls: Annotated[
        int | None, _flag("--max-model-calls", panel=_LIMITS, help="Maximum number of model calls.")
    ] = None
    max_turns: Annotated[
        int | None, _flag("--max-turns", panel=_LIMITS, help="Old name of --max-model-calls.", hidden=True)
    ] = None
    max_cost: Annotated[
        float | None, _flag("--max-cost", panel=_LIMITS, metavar="USD", help="Stop once reported cost exceeds USD.")
    ] = None
    max_tokens_total: Annotated[
        int | None,
        _flag("--max-tokens-total", panel=_LIMITS, metavar="TOKENS", help="Stop once total tokens exceed this."),
    ] = None
    max_text_bytes: Annotated[
        int | None,
        _flag(
            "--max-text-bytes",
            panel=_LIMITS,
            metavar="BYTES",
            help="Cut longer texts in events and in the result (0 = never); the journal has all of them.",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        _flag("--timeout", panel=_LIMITS, metavar="SECONDS", parser=seconds, help="Time limit for the whole run."),
    ] = None
    inactivity_timeout: Annotated[
        float | None,
        _flag(
            "--inactivity-timeout",
            panel=_LIMITS,
            metavar="SECONDS",
            parser=seconds,
            help="Time limit without any output.",
        ),
    ] = None
    grace_period: Annotated[
        float | None,
        _flag(
            "--grace-period",
            panel=_LIMITS,
            metavar="SECONDS",
            parser=seconds,
            help="Seconds from SIGTERM to SIGKILL (default 5).",
        ),
    ] = None
    retry: Annotated[
        int | None,
        _flag(
            "--retry", panel=_LIMITS, metavar="ATTEMPTS", help="Total attempts if the agent crashes or is rate limited."
        ),
    ] = None
    retry_delay: Annotated[
        float | None,
        _flag(
            "--retry-delay",
            panel=_LIMITS,
            metavar="SECONDS",
            parser=seconds,
            help="Initial retry delay; doubles each time (default 1).",
        ),
    ] = None

    wait_for_quota: Annotated[
        str | None,
        _flag(
            "--wait-for-quota",
            panel=_LIMITS,
            metavar="MAX",
            help="If refused: wait for the reported reset, up to MAX (90m, 5h; 0 = no limit), and start again.",
        ),
    ] = None
    fallback: Annotated[
        list[str] | None,
        _flag(
            "--fallback",
            panel=_LIMITS,
            metavar="AGENT[:MODEL]",
            help="If refused by a rate limit or quota: run this agent instead (repeatable, in order).",
        ),
    ] = None

    yolo: Annotated[bool, _flag("--yolo", panel=_TOOLS, help="Allow everything.")] = False
    deny: Annotated[bool, _flag("--deny", panel=_TOOLS, help="Deny everything that needs permission.")] = False
    plan: Annotated[
        bool, _flag("--plan", panel=_TOOLS, help="Plan mode of the agent: read and plan, change nothing.")
    ] = False
    allowed_tools: Annotated[
        list[str] | None,
        _flag(
            "--allowed-tools",
            panel=_TOOLS,
            metavar="TOOL",
            help="Tool that the agent may use without asking, as it names it (repeatable).",
        ),
    ] = None
    disallowed_tools: Annotated[
        list[str] | None,
        _flag(
            "--disallowed-tools",
            panel=_TOOLS,
            metavar="TOOL",
            help="Tool that the agent may not use, as it names it (repeatable).",
        ),
    ] = None
    policy: Annotated[
        Path | None,
        _flag("--policy", panel=_TOOLS, metavar="FILE", help="Rules that allow, deny or ask (TOML)."),
    ] = None
    hooks: Annotated[
        bool | None,
        _flag("--hooks/--no-hooks", panel=_TOOLS, help="Run registered hooks (default: on)."),
    ] = None
    approval_timeout: Annotated[
        float | None,
        _flag(
            "--approval-timeout",
            panel=_TOOLS,
            metavar="SECONDS",
            parser=seconds,
            help="Deny unanswered requests after SECONDS (0 = wait forever).",
        ),
    ] = None
    non_interactive: Annotated[bool, _flag("--non-interactive", panel=_TOOLS, help="Never prompt; deny instead.")] = (
        False
    )
    mcp_server: Annotated[
        list[str] | None,
        _flag(
            "--mcp-server",
            panel=_TOOLS,
            metavar="SPEC",
            help="MCP server for this run: NAME=COMMAND ARGS..., NAME=URL (NAME=sse+URL for the SSE transport), or "
            '@FILE with {"mcpServers": {NAME: {command, args, env} | {url, headers, type}}}.',
        ),
    ] = None

    extra_arg: Annotated[
        list[str] | None,
        _flag(
            "--extra-arg",
            panel=_TOOLS,
            metavar="=ARG",
            help="Argument for the agent's own command line: --extra-arg=--flag (repeatable).",
        ),
    ] = None
    native_option: Annotated[
        list[str] | None,
        _flag(
            "--native-option",
            panel=_TOOLS,
            metavar="KEY=VALUE",
            help="Setting of the agent for this run; VALUE is JSON or a text (repeatable).",
        ),
    ] = None

    json: Annotated[
        bool | None,
        _flag(
            "--json/--no-json",
            panel=_OUTPUT,
            help="Print events as JSON lines, then the result (default between pipes).",
        ),
    ] = None
    output_format: Annotated[
        str | None,
        _flag(
            "--output-format",
            panel=_OUTPUT,
            metavar="text|json|jsonl",
            help="text: for people; jsonl: same as --json; json: only the result.",
        ),
    ] = None
    compact: Compact = False
    quiet: Annotated[bool, _flag("--quiet", "-q", panel=_OUTPUT, help="Print only the final text.")] = False
    include_subagent_events: Annotated[
        bool, _flag("--include-subagent-events", panel=_OUTPUT, help="Include the events of sub-agents.")
    ] = False
    journal: Annotated[
        Path | None, _flag("--journal", panel=_OUTPUT, metavar="PATH", help="Path of the run's recording.")
    ] = None
    no_journal: Annotated[bool, _flag("--no-journal", panel=_OUTPUT, help="Do not record the run.")] = False
    tag: Annotated[list[str] | None, _flag("--tag", panel=_OUTPUT, help="Label for the run (repeatable).")] = None
    run_id: Annotated[
        str | None, _flag("--run-id", panel=_OUTPUT, metavar="ULID", help="Run id (default: generated).")
    ] = None
    project_id: Annotated[str | None, _flag("--project-id", panel=_OUTPUT, help="Project id of the run.")] = None
    server: Server = None
    server_token_file: ServerTokenFile = None
    debug: Debug = False
    no_color: NoColor = False
    config_dir: ConfigDir = None
    project_dir: ProjectDir = None


def with_run_flags(function: Callable[..., int]) -> Callable[..., int]:
    """Add every field of `RunFlags` as a parameter to the command `function(..., flags: RunFlags)`."""
    return with_flags(RunFlags, function)


SERVICE_FLAGS = ("server", "server_token_file")
"""The fields of `RunFlags` that name a service, for commands that only work locally."""


def with_run_flags_but(*left_out: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator like `with_run_flags` without these fields, for commands that set them differently."""
    return partial(with_flags, RunFlags, left_out=frozenset(left_out))
