"""Run options to command line and configuration: the server behind our bridge, or `opencode run`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options
from agent_mux.sdk.options import ApprovalMode, McpServer, RunOptions
from agent_mux_adapters._dialects.acp import acp_context
from agent_mux_adapters.opencode.requests import RULES

RUN = "run-json"
SERVE = "serve"
ACP = "acp"
BRIDGE = Path(__file__).with_name("bridge.py")
INSTRUCTIONS_FILE = "instructions.md"
_OUTPUT_LIMIT = "OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX"
VARIABLE = "OPENCODE_CONFIG_CONTENT"
AGENT = "build"
"""OpenCode's default agent, which gets the settings that OpenCode has only per agent."""
_ASK: dict[str, Any] = {"*": "ask"}
# OpenCode appends the user's rules for single commands or files to ours, because ours begin with "*" as well.
# "*_*" matches the tools of MCP servers, and few others.
_PROMPT = {"bash": _ASK, "edit": _ASK, "webfetch": "ask", "websearch": "ask", "*_*": "ask"}
_TOOLS = ("bash", "edit", "read", "glob", "grep", "list", "task", "external_directory", "todowrite", "webfetch",
          "websearch", "lsp", "doom_loop", "skill")  # fmt: skip
_EVERYTHING = {**dict.fromkeys(_TOOLS, "ask"), "*": "ask"}
_PLAN = {**_PROMPT, "edit": "deny"}
_PERMISSIONS: dict[ApprovalMode, dict[str, Any]] = {
    "yolo": {}, "prompt": _PROMPT, "deny": _EVERYTHING, "plan": _PLAN,
}  # fmt: skip
PLAN_AGENT = "plan"
"""OpenCode's agent for approval mode `plan`."""
THINKING_KEYS = ("variant",)
"""Keys of `thinking_override`: the variant of the model, of which each provider has its own."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--format", "--thinking", "--interactive", "-i", "--hostname", "--port"),
                    "agent-mux reads its output"),
    "--auto": "use the option `approval_mode`",
    **dict.fromkeys(("--model", "-m"), "use the option `model`"),
    "--variant": "use the options `thinking_effort` and `thinking_override`",
    **dict.fromkeys(("--session", "-s", "--continue", "-c"), "use the option `session_id`"),
    "--fork": "use the option `fork_session_id`",
    **dict.fromkeys(("--file", "-f"), "use the option `attachments`"),
    "--dir": "use the option `cwd`",
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the environment and the protocol for the options."""
    return _serve(options, environment) if needs_server(options) else _run(options, environment)


def needs_server(options: RunOptions) -> bool:
    """Return whether the run needs more than `opencode run` has.

    `opencode run` refuses every request for permission, does not stream, does not report retries, repeats a prompt that
    exceeds the context forever, sends images as text, and always stores its session.
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


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec's context: images are `data:` URLs, other attachments `file:` URLs."""
    context = acp_context("opencode", options, spawn)
    variant = options.thinking_override.get("variant", options.thinking_effort)
    rules = session_rules(options)
    return replace(context, thinking_effort=variant, settings={RULES: rules} if rules else {})


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
    variant = options.thinking_override.get("variant", options.thinking_effort)
    if variant is not None:
        flags.append(f"--variant={variant}")
    inherited_value = options.session_id or options.fork_session_id
    if inherited_value is not None:
        flags.append(f"--session={inherited_value}")
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
    config = run_config(options, environment.environ, instructions)
    if config is not None:
        env[VARIABLE] = config
    if options.output_limit is not None:
        env[_OUTPUT_LIMIT] = str(options.output_limit)
    return env


def _notes(options: RunOptions, environment: SpawnEnvironment) -> tuple[str, ...]:
    unsupported = {"top_k": options.top_k, "thinking_budget_tokens": options.thinking_budget_tokens}
    notes = [f"opencode has no setting for {name}: ignored" for name, value in unsupported.items() if value is not None]
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        notes.append("opencode appends instructions to its own: system_prompt_mode 'prepend' means 'append'")
    if agent_settings(options):
        name = PLAN_AGENT if options.approval_mode == "plan" else AGENT
        notes.append(f"opencode has these settings only per agent: the run uses its agent {name!r}")
    if options.thinking_effort is not None:
        notes.append("opencode treats efforts as variants of a model: unknown ones are ignored")
    if options.model is not None and "/" not in options.model:
        notes.append(f"opencode names models as provider/model: {options.model!r} may be unknown")
    if not is_mergeable(environment.environ):
        notes.append(f"{VARIABLE} in the environment is not plain JSON: ignored")
    return tuple(notes)


def run_config(options: RunOptions, inherited: Mapping[str, str], instructions: Sequence[str]) -> str | None:
    """Return the value of `OPENCODE_CONFIG_CONTENT`, or None if no setting is needed.

    OpenCode merges it over the user's own files; nothing is written. `instructions` are paths of files.
    """
    ours: dict[str, Any] = {}
    permission = permission_of(options)
    if permission:
        ours["permission"] = permission
    if options.approval_mode != "yolo" or options.asks_everything:
        # Otherwise the turn ends without an answer after two denials at once: only the first one has a message.
        ours["experimental"] = {"continue_loop_on_deny": True}
    if options.mcp_servers:
        ours["mcp"] = {server.name: write_server(server) for server in options.mcp_servers}
    if instructions:
        ours["instructions"] = list(instructions)
    agent, name = agent_settings(options), PLAN_AGENT if options.approval_mode == "plan" else AGENT
    if agent:
        ours["agent"] = {name: agent}
    if agent or options.approval_mode == "plan":
        ours["default_agent"] = name
    ours = merge_native_options("opencode", ours, options.native_options)
    return json.dumps(merge_config(_inherited(inherited), ours)) if ours else None


def permission_of(options: RunOptions) -> dict[str, Any]:
    """Return the permission rules. In `yolo`, our codec grants what asks; what the user forbids stays forbidden."""
    rules = dict(_EVERYTHING if options.asks_everything else _PERMISSIONS[options.approval_mode])
    if not may_ask_questions(options):
        rules["question"] = "deny"
    if options.add_dirs and not options.asks_everything:
        rules["external_directory"] = {"*": "ask", **{f"{path}/*": "allow" for path in options.add_dirs}}
    for rule in session_rules(options):
        tool, pattern = rule["permission"], rule["pattern"]
        present = rules.get(tool)
        by_pattern = present if isinstance(present, dict) else {} if present is None else {"*": present}
        rules[tool] = rule["action"] if pattern == "*" else {**by_pattern, pattern: rule["action"]}
    return rules


def session_rules(options: RunOptions) -> list[dict[str, str]]:
    """Return the rules for named tools, or their calls that match a pattern: `bash` or `bash(git *)`. The last counts.

    Allowed tools still ask where a policy or hooks decide about every call, and in plan mode.
    """
    asks = options.asks_everything or options.approval_mode == "plan"
    named = [*((name, "allow") for name in (() if asks else options.allowed_tools)),
             *((name, "deny") for name in options.disallowed_tools)]  # fmt: skip
    parts = [(*name.partition("("), action) for name, action in named]
    return [{"permission": tool, "pattern": pattern.removesuffix(")") or "*", "action": action}
            for tool, _, pattern, action in parts]  # fmt: skip


def may_ask_questions(options: RunOptions) -> bool:
    """Return whether the agent's questions can be answered."""
    return options.approval_mode == "prompt" or options.on_input_required is not None


def agent_settings(options: RunOptions) -> dict[str, Any]:
    """Return the settings that OpenCode has for agents only, not for a run."""
    settings: dict[str, Any] = {}
    if options.system_prompt is not None and options.system_prompt_mode == "replace":
        settings["prompt"] = options.system_prompt
    for name in ("temperature", "top_p"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    return settings


def merge_config(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations: objects are merged, lists appended, other values taken from `override`."""
    result = dict(base)
    for key, value in override.items():
        inherited_value = result.get(key)
        if isinstance(inherited_value, Mapping) and isinstance(value, Mapping):
            result[key] = merge_config(inherited_value, value)
        elif isinstance(inherited_value, list) and isinstance(value, list):
            result[key] = [*inherited_value, *value]
        else:
            result[key] = value
    return result


def is_mergeable(environ: Mapping[str, str]) -> bool:
    """Return whether the variable's inherited value can be merged; unlike OpenCode, we accept no comments in it."""
    try:
        return isinstance(json.loads(environ.get(VARIABLE) or "{}"), dict)
    except ValueError:
        return False


def _inherited(environ: Mapping[str, str]) -> dict[str, Any]:
    return dict(json.loads(environ.get(VARIABLE) or "{}")) if is_mergeable(environ) else {}


def write_server(server: McpServer) -> dict[str, Any]:
    """Convert an MCP server to OpenCode's format."""
    if server.transport == "stdio":
        command = [server.command, *server.args]
        return {"type": "local", "command": command, "environment": dict(server.env), "enabled": True}
    return {"type": "remote", "url": server.url, "headers": dict(server.headers), "enabled": True}
