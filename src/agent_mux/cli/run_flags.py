"""The flags of `amux run` and `amux record`, as data: they mirror `RunOptions`."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from agent_mux.cli.decorators import keyword_parameter, with_parameters
from agent_mux.cli.options import Compact, ConfigDir, Debug, NoColor, ProjectDir, Server, ServerTokenFile, profile_names

_TASK, _MODEL, _SESSION, _LIMITS, _TOOLS, _OUTPUT = (
    "Task",
    "Model",
    "Session",
    "Limits",
    "Permissions and tools",
    "Output",
)


def _flag(*names: str, panel: str, help: str, metavar: str | None = None, **more: Any) -> Any:  # noqa: A002  # as typer calls it
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False, **more)


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """What was said on the command line. None and empty: nothing was said."""

    agent: Annotated[str | None, _flag("--agent", "-a", panel=_TASK, help="The agent, instead of the first word.")] = (
        None
    )
    prompt: Annotated[
        list[str] | None, _flag("--prompt", "-p", panel=_TASK, help="The prompt. Several are joined with a blank line.")
    ] = None
    attach: Annotated[
        list[str] | None, _flag("--attach", panel=_TASK, metavar="FILE|URL", help="A file for the agent to see.")
    ] = None
    command: Annotated[
        str | None,
        _flag(
            "--command",
            panel=_TASK,
            metavar="'PROGRAM ARGS...'",
            help="The program, for agents that stand for any (acp, terminal); quoted as in a shell, run without one.",
        ),
    ] = None
    interactive: Annotated[
        bool,
        _flag(
            "--interactive",
            "-i",
            panel=_TASK,
            help="Talk to the agent: each line is a prompt, or a command such as /help. With --json: for programs.",
        ),
    ] = False
    profile: Annotated[
        str | None,
        _flag(
            "--profile",
            panel=_TASK,
            metavar="NAME",
            help="What it says holds where the command line says nothing.",
            autocompletion=profile_names,
        ),
    ] = None
    no_profile: Annotated[
        bool, _flag("--no-profile", panel=_TASK, help="No profile, also where a configuration names one.")
    ] = False
    cwd: Annotated[Path | None, _flag("--cwd", panel=_TASK, help="Where the agent works.")] = None
    isolation: Annotated[
        str | None,
        _flag(
            "--isolation",
            panel=_TASK,
            metavar="none|worktree",
            help="worktree: in a git worktree of its own, which stays if the agent changes something in it.",
        ),
    ] = None
    env: Annotated[
        list[str] | None, _flag("--env", panel=_TASK, metavar="NAME=VALUE", help="Add to the agent's environment.")
    ] = None
    system: Annotated[str | None, _flag("--system", panel=_TASK, help="A system prompt.")] = None
    system_mode: Annotated[
        str | None, _flag("--system-mode", panel=_TASK, metavar="append|prepend|replace", help="Where it goes.")
    ] = None
    agents_doc: Annotated[
        Path | None,
        _flag("--agents-doc", panel=_TASK, metavar="FILE", help="Instructions, as AGENTS.md has, for this run only."),
    ] = None
    skill: Annotated[
        list[str] | None,
        _flag("--skill", panel=_TASK, metavar="FOLDER", help="A skill (a folder with SKILL.md), for this run only."),
    ] = None
    output_schema: Annotated[
        Path | None, _flag("--output-schema", panel=_TASK, metavar="FILE", help="JSON Schema of the answer.")
    ] = None

    model: Annotated[str | None, _flag("--model", "-m", panel=_MODEL, help="The model, as the agent names it.")] = None
    thinking_effort: Annotated[
        str | None, _flag("--thinking-effort", panel=_MODEL, metavar="low|medium|high|max", help="How hard to think.")
    ] = None
    thinking_budget: Annotated[
        int | None,
        _flag("--thinking-budget", panel=_MODEL, metavar="TOKENS", help="At least 1024; wins over the effort."),
    ] = None
    temperature: Annotated[float | None, _flag("--temperature", panel=_MODEL, help="0 to 2.")] = None
    top_p: Annotated[float | None, _flag("--top-p", panel=_MODEL, help="0 to 1.")] = None
    top_k: Annotated[int | None, _flag("--top-k", panel=_MODEL, help="At least 1.")] = None
    max_tokens: Annotated[int | None, _flag("--max-tokens", panel=_MODEL, help="Output tokens at most.")] = None
    stream: Annotated[
        bool | None, _flag("--stream/--no-stream", panel=_MODEL, help="Text as it is written; default: where possible.")
    ] = None

    session: Annotated[str | None, _flag("--session", panel=_SESSION, metavar="ID", help="Continue a session.")] = None
    fork: Annotated[str | None, _flag("--fork", panel=_SESSION, metavar="ID", help="Begin with its history.")] = None
    no_session: Annotated[bool, _flag("--no-session", panel=_SESSION, help="Leave no session behind.")] = False

    max_turns: Annotated[int | None, _flag("--max-turns", panel=_LIMITS, help="Model calls at most.")] = None
    max_cost: Annotated[
        float | None, _flag("--max-cost", panel=_LIMITS, metavar="USD", help="Stop when it is seen to cost more.")
    ] = None
    max_tokens_total: Annotated[
        int | None,
        _flag(
            "--max-tokens-total", panel=_LIMITS, metavar="TOKENS", help="Stop when it is seen to use more, all in all."
        ),
    ] = None
    timeout: Annotated[
        float | None, _flag("--timeout", panel=_LIMITS, metavar="SECONDS", help="For the whole run.")
    ] = None
    inactivity_timeout: Annotated[
        float | None, _flag("--inactivity-timeout", panel=_LIMITS, metavar="SECONDS", help="Without any output.")
    ] = None
    grace_period: Annotated[
        float | None,
        _flag("--grace-period", panel=_LIMITS, metavar="SECONDS", help="Between asking to leave and killing; 5."),
    ] = None
    retry: Annotated[
        int | None,
        _flag(
            "--retry", panel=_LIMITS, metavar="ATTEMPTS", help="Attempts in all when the agent crashes or is limited."
        ),
    ] = None
    retry_delay: Annotated[
        float | None,
        _flag("--retry-delay", panel=_LIMITS, metavar="SECONDS", help="Before the second attempt, then doubled; 1."),
    ] = None

    yolo: Annotated[bool, _flag("--yolo", panel=_TOOLS, help="Allow everything.")] = False
    deny: Annotated[bool, _flag("--deny", panel=_TOOLS, help="Allow nothing that needs permission.")] = False
    policy: Annotated[
        Path | None,
        _flag("--policy", panel=_TOOLS, metavar="FILE", help="Rules about what is allowed, denied or asked (TOML)."),
    ] = None
    hooks: Annotated[
        bool | None,
        _flag("--hooks/--no-hooks", panel=_TOOLS, help="Call the hooks that are registered here; as a rule, it does."),
    ] = None
    approval_timeout: Annotated[
        float | None,
        _flag("--approval-timeout", panel=_TOOLS, metavar="SECONDS", help="No answer in time is no; 0: for ever."),
    ] = None
    non_interactive: Annotated[
        bool, _flag("--non-interactive", panel=_TOOLS, help="Ask nobody: what would be asked is denied.")
    ] = False
    mcp_server: Annotated[
        list[str] | None,
        _flag(
            "--mcp-server",
            panel=_TOOLS,
            metavar="SPEC",
            help="For this run only: NAME=COMMAND ARGS..., NAME=URL (NAME=sse+URL for the old transport), or "
            '@FILE with {"mcpServers": {NAME: {command, args, env} | {url, headers, type}}}.',
        ),
    ] = None

    json: Annotated[
        bool | None,
        _flag(
            "--json/--no-json", panel=_OUTPUT, help="One event per line, then the result; implied between two pipes."
        ),
    ] = None
    output_format: Annotated[
        str | None,
        _flag(
            "--output-format",
            panel=_OUTPUT,
            metavar="text|json|jsonl",
            help="text: for people; jsonl: as --json; json: the result alone.",
        ),
    ] = None
    compact: Compact = False
    quiet: Annotated[bool, _flag("--quiet", "-q", panel=_OUTPUT, help="Only the final text.")] = False
    include_subagent_events: Annotated[
        bool, _flag("--include-subagent-events", panel=_OUTPUT, help="Show the inside of sub-agents.")
    ] = False
    journal: Annotated[
        Path | None, _flag("--journal", panel=_OUTPUT, metavar="PATH", help="Where the recording of the run goes.")
    ] = None
    no_journal: Annotated[bool, _flag("--no-journal", panel=_OUTPUT, help="Record nothing.")] = False
    tag: Annotated[list[str] | None, _flag("--tag", panel=_OUTPUT, help="A label for the run.")] = None
    run_id: Annotated[
        str | None, _flag("--run-id", panel=_OUTPUT, metavar="ULID", help="Its id; default: a new one.")
    ] = None
    project_id: Annotated[str | None, _flag("--project-id", panel=_OUTPUT, help="Which project it belongs to.")] = None
    server: Server = None
    server_token_file: ServerTokenFile = None
    debug: Debug = False
    no_color: NoColor = False
    config_dir: ConfigDir = None
    project_dir: ProjectDir = None


def with_run_flags(function: Callable[..., int]) -> Callable[..., int]:
    """The command `function(..., flags: RunFlags)`, with each field of `RunFlags` as a parameter of its own."""
    return _with_flags(function, frozenset())


def with_run_flags_but(*left_out: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """As `with_run_flags`, for a command of which one run is only a part: without these fields."""
    return partial(_with_flags, left_out=frozenset(left_out))


def _with_flags(function: Callable[..., int], left_out: frozenset[str]) -> Callable[..., int]:
    told = get_type_hints(RunFlags, include_extras=True)
    hints = {name: hint for name, hint in told.items() if name not in left_out}

    def command(**given: Any) -> int:
        flags = RunFlags(**{name: given.pop(name) for name in hints})
        return function(**given, flags=flags)

    added = [
        keyword_parameter(spec.name, hints[spec.name], spec.default) for spec in fields(RunFlags) if spec.name in hints
    ]
    return with_parameters(command, function, added, without="flags")
