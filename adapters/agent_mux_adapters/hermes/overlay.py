"""A run's own settings, laid over the user's configuration for this run only.

Hermes has a layer of settings above the user's own, meant for administrators: a directory that `HERMES_MANAGED_DIR`
names, `/etc/hermes` if nothing does. It is only read, so nothing of ours is ever written into the user's files. Where
an administrator uses it, it is theirs: then we leave it alone, and say what could not be set.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_mux.options import RunOptions
from agent_mux_adapters.hermes import mcp_files

VARIABLE = "HERMES_MANAGED_DIR"
DIRECTORY = Path("/etc/hermes")
FILE = "config.yaml"
PATIENCE = 7 * 24 * 3600  # seconds that a question waits for a person; by default it is denied after one minute
SERVER_START = 30.0  # seconds; by default tools that come later than 1.5 s are left out of the first turn
DOLLAR = "AGENT_MUX_DOLLAR"
EVERYTHING = "*"


def is_taken(environ: Mapping[str, str]) -> bool:
    """An administrator uses this layer."""
    return bool(environ.get(VARIABLE, "").strip()) or DIRECTORY.is_dir()


def settings_of(options: RunOptions) -> dict[str, Any]:
    """What this run asks for, in the words of `config.yaml`."""
    approvals: dict[str, Any] = {"mode": "manual", "timeout": PATIENCE}
    if options.approval_mode == "deny":
        approvals["deny"] = [EVERYTHING]  # otherwise commands that look harmless run unasked
    settings: dict[str, Any] = {"approvals": approvals}
    agent = {"system_prompt": options.system_prompt, "reasoning_effort": options.thinking_effort}
    if said := {name: value for name, value in agent.items() if value is not None}:
        settings["agent"] = said
    if options.output_limit is not None:
        settings["model"] = {"max_tokens": options.output_limit}
    if options.mcp_servers:
        settings["mcp_servers"] = {server.name: mcp_files.write(server) for server in options.mcp_servers}
        settings["mcp_discovery_timeout"] = SERVER_START
    return settings


def unsaid(options: RunOptions) -> Iterable[str]:
    """What of the options cannot be said without this layer."""
    is_stored = options.session_id is not None or options.fork_session_id is not None
    needs = {
        "approval_mode": options.approval_mode != "yolo",
        "system_prompt": options.system_prompt is not None,
        "thinking_effort": options.thinking_effort is not None and is_stored,
        "max_output_tokens": options.output_limit is not None,
        "mcp_servers": bool(options.mcp_servers),
    }
    return [name for name, is_needed in needs.items() if is_needed]


def as_file(settings: Mapping[str, Any]) -> str:
    """JSON is YAML. Hermes replaces `${NAME}` by a variable, once: one that is a dollar keeps it as it was."""
    return json.dumps(settings).replace("${", f"${{{DOLLAR}}}{{")
