"""The configuration of one run, for `OPENCODE_CONFIG_CONTENT`: laid over the user's own files, written nowhere."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_mux.options import ApprovalMode, RunOptions
from agent_mux_adapters.opencode.mcp_servers import write_server

VARIABLE = "OPENCODE_CONFIG_CONTENT"
AGENT = "build"
"""OpenCode's default agent: settings that belong to an agent are given to this one."""

_ASK: dict[str, Any] = {"*": "ask"}
# What the user's configuration says of single commands or files comes after, where it began with "*" too.
# The tools of MCP servers, and few others, have an underscore in their name.
_PROMPT = {"bash": _ASK, "edit": _ASK, "webfetch": "ask", "websearch": "ask", "*_*": "ask"}
_TOOLS = ("bash", "edit", "read", "glob", "grep", "list", "task", "external_directory", "todowrite", "webfetch",
          "websearch", "lsp", "doom_loop", "skill")  # fmt: skip
_EVERYTHING = {**dict.fromkeys(_TOOLS, "ask"), "*": "ask"}
_PERMISSIONS: dict[ApprovalMode, dict[str, Any]] = {"yolo": {}, "prompt": _PROMPT, "deny": _EVERYTHING}


def config_of(options: RunOptions, inherited: Mapping[str, str], instructions: Sequence[str]) -> str | None:
    """The value of the variable; None when there is nothing to say. `instructions`: paths of files."""
    ours: dict[str, Any] = {}
    permission = permission_of(options)
    if permission:
        ours["permission"] = permission
    if options.mcp_servers:
        ours["mcp"] = {server.name: write_server(server) for server in options.mcp_servers}
    if instructions:
        ours["instructions"] = list(instructions)
    agent = agent_settings(options)
    if agent:
        ours |= {"agent": {AGENT: agent}, "default_agent": AGENT}
    return json.dumps(merged(_inherited(inherited), ours)) if ours else None


def permission_of(options: RunOptions) -> dict[str, Any]:
    """What needs permission. In `yolo` everything that asks is granted; what the user forbids stays forbidden."""
    rules = dict(_EVERYTHING if options.asks_everything else _PERMISSIONS[options.approval_mode])
    if not may_be_asked(options):
        rules["question"] = "deny"
    return rules


def may_be_asked(options: RunOptions) -> bool:
    """Somebody is there to answer the agent's questions."""
    return options.approval_mode == "prompt" or options.on_input_required is not None


def agent_settings(options: RunOptions) -> dict[str, Any]:
    """What can only be set for an agent, not for a run."""
    settings: dict[str, Any] = {}
    if options.system_prompt is not None and options.system_prompt_mode == "replace":
        settings["prompt"] = options.system_prompt
    for name in ("temperature", "top_p"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    return settings


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both configurations in one: objects are merged, of anything else that of `over` is taken."""
    result = dict(under)
    for key, value in over.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            result[key] = [*before, *value]
        else:
            result[key] = value
    return result


def is_readable(environ: Mapping[str, str]) -> bool:
    """What the variable says already can be merged with ours. OpenCode also takes comments; we do not."""
    try:
        return isinstance(json.loads(environ.get(VARIABLE) or "{}"), dict)
    except ValueError:
        return False


def _inherited(environ: Mapping[str, str]) -> dict[str, Any]:
    return dict(json.loads(environ.get(VARIABLE) or "{}")) if is_readable(environ) else {}
