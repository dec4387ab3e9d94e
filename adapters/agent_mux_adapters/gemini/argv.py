"""Run options to the command line of Gemini CLI. Every flag was tried on 0.61.0.

One-shot (`--output-format=stream-json`, the prompt on stdin) when no approval or question can occur: it reports every
tool call with its input, even of an unknown tool, and all tokens including thinking and cached ones. ACP (`--acp`) for
everything else: approvals, conversations, MCP servers of the run (which have no other way into the CLI), attachments.
ACP reports thoughts and real diffs, but no inputs, and not all tokens.

`--debug` is always on. Without it neither protocol reports how a command exited, and ACP not even what it printed. The
additional lines on stderr (about 20 kB per call) are ignored (see `notices.py`).

There are no settings for one run: the file of `GEMINI_CLI_SYSTEM_SETTINGS_PATH` is read only if root owns it and all
directories above it. So agent-mux counts the turns, and temperature and similar options cannot be set.

The directory is trusted for the run only in mode `yolo`, because a trusted project may start programs without approval
(hooks, MCP servers). The one-shot mode refuses to start in an untrusted directory; ACP ignores the project's
configuration there.
"""

import json
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters._dialects.acp import acp_context

STREAM_JSON = "stream-json"
ACP = "acp"
SYSTEM_PROMPT_FILE = "system.md"
POLICY_FILE = "policy.toml"
_RULE_PRIORITIES = {"deny": 999, "allow": 998}
"""Priorities of the rules of a run: the highest that a user's rules may have, above all built-in ones."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--acp", "--experimental-acp", "--output-format", "-o", "--prompt", "-p", "--prompt-interactive",
                     "-i", "--debug", "-d"), "agent-mux reads its output"),
    **dict.fromkeys(("--approval-mode", "--yolo", "-y"), "use the option `approval_mode`"),
    **dict.fromkeys(("--model", "-m"), "use the option `model`"),
    **dict.fromkeys(("--resume", "-r", "--session-id", "--session-file"), "use the option `session_id`"),
    "--include-directories": "use the option `add_dirs`",
    "--allowed-tools": "use the option `allowed_tools`",
    **dict.fromkeys(("--worktree", "-w"), "use the option `isolation`"),
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""
TRUST = "GEMINI_CLI_TRUST_WORKSPACE"

NO_LAUNCHER = {"GEMINI_CLI_NO_RELAUNCH": "true"}
"""Disables the CLI's launcher, which only gives the CLI more memory, but swallows signals."""

NO_KNOB = ("temperature", "top_p", "top_k", "output_limit")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, environment, files and notes for these options."""
    two_way = needs_acp(options)
    flags = ["--acp" if two_way else "--output-format=stream-json", "--debug"]
    flags.append(f"--approval-mode={_approval_mode(options)}")
    flags += [f"--include-directories={path}" for path in options.add_dirs]
    if options.allowed_tools or options.disallowed_tools:
        flags.append(f"--policy={environment.temp_dir}/{POLICY_FILE}")
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.session_id is not None:
        # Also with ACP, which loads the session over the protocol: without the flag the CLI would delete it at start.
        flags.append(f"--resume={options.session_id}")
    return SpawnArgs(
        argv=(environment.executable, *flags),
        protocol=ACP if two_way else STREAM_JSON,
        env={**NO_LAUNCHER, **_trust(options, environment), **_system_prompt(options, environment)},
        stdin_text=None if two_way else _prompt_of(options),
        stdout="pipe" if two_way else "file",  # process.exit() drops what a pipe has not taken: all above 1 MiB
        files=_files(options),
        counts_turns=False,
        notes=tuple(_notes(options, environment)),
    )


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return what the codec needs; the prompt only if the codec sends it."""
    context = acp_context("gemini", options, spawn)
    return context if spawn.protocol == ACP else replace(context, prompt=None)


def needs_acp(options: RunOptions) -> bool:
    """Return whether the run needs more than the one-shot mode supports."""
    return options.interactive or not _is_unasked(options) or bool(options.mcp_servers) or bool(options.attachments)


def _approval_mode(options: RunOptions) -> str:
    if options.approval_mode == "plan":
        return "plan"
    return "yolo" if _is_unasked(options) else "default"


def _is_unasked(options: RunOptions) -> bool:
    return options.approval_mode == "yolo" and options.on_approval_request is None


def _trust(options: RunOptions, environment: SpawnEnvironment) -> dict[str, str]:
    is_decided = TRUST in environment.environ or not _is_unasked(options)
    return {} if is_decided else {TRUST: "true"}


def _replaces_system_prompt(options: RunOptions) -> bool:
    return options.system_prompt is not None and options.system_prompt_mode == "replace"


def _system_prompt(options: RunOptions, environment: SpawnEnvironment) -> dict[str, str]:
    if not _replaces_system_prompt(options):
        return {}
    return {"GEMINI_SYSTEM_MD": f"{environment.temp_dir}/{SYSTEM_PROMPT_FILE}"}


def _files(options: RunOptions) -> dict[str, str]:
    files = {SYSTEM_PROMPT_FILE: options.system_prompt or ""} if _replaces_system_prompt(options) else {}
    if options.allowed_tools or options.disallowed_tools:
        files[POLICY_FILE] = tool_rules(options)
    return files


def tool_rules(options: RunOptions) -> str:
    """Return the rules of the policy engine for named tools; `NAME(PREFIX)` stands for commands that begin so.

    Allowed tools still ask where a policy or hooks decide about every call.
    """
    allowed = () if options.asks_everything else options.allowed_tools
    named = [*((name, "allow") for name in allowed), *((name, "deny") for name in options.disallowed_tools)]
    return "\n".join(_rule(name, decision, _RULE_PRIORITIES[decision]) for name, decision in named)


def _rule(name: str, decision: str, priority: int) -> str:
    tool, parenthesis, prefix = name.partition("(")
    lines = ["[[rule]]", f"toolName = {json.dumps(tool)}", f'decision = "{decision}"', f"priority = {priority}"]
    if parenthesis:
        lines.append(f"commandPrefix = {json.dumps(prefix.removesuffix(')'))}")
    return "\n".join([*lines, ""])


def _prompt_of(options: RunOptions) -> str:
    if not options.system_prompt or _replaces_system_prompt(options):
        return options.prompt_text
    return f"{options.system_prompt}\n\n{options.prompt_text}"


def _notes(options: RunOptions, environment: SpawnEnvironment) -> Iterator[str]:
    for name in NO_KNOB:
        if getattr(options, name) is not None:
            yield f"gemini has no setting for {name.replace('output_limit', 'max_output_tokens')} of one run: ignored."
    if options.system_prompt is not None and not _replaces_system_prompt(options):
        yield "gemini takes no further system prompt for one run: the text was put before the prompt."
    if options.no_session:
        yield "gemini saves every session: no_session was ignored."
    if options.session_id is not None:
        yield "gemini may delete a continued session when it is next started for another one in the same directory."
        if needs_acp(options):
            yield "gemini's ACP mode loses a session that is continued within the minute in which it was created."
    if not _is_unasked(options) and TRUST not in environment.environ:
        yield f"gemini uses GEMINI.md, settings and MCP servers only in a trusted directory; {TRUST}=true makes it one."
