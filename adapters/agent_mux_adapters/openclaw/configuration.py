"""OpenClaw's configuration: where it is, its MCP servers, and the configuration of one run.

A run's configuration overrides the user's own for this run only; the user's file is only read. `launching` merges the
two. OpenClaw replaces `${NAME}` by the variable everywhere in a configuration, so `${` in our texts is escaped.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.native_options import merge_native_options
from agent_mux.sdk.options import McpServer, RunOptions
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import text

DEFAULTS: Mapping[str, Any] = {
    "agents": {"defaults": {"sandbox": {"mode": "off"}}},
    "skills": {"load": {"watch": False}},
    "tools": {"profile": "coding", "fs": {"workspaceOnly": True}},
}
"""Settings for what the user has not configured: those of `openclaw agent exec`, so that both protocols agree."""
_UNANSWERABLE_TOOLS = ("ask_user",)
"""Tools that wait for a person's answer, which ACP cannot transport: they would wait for 15 minutes."""
_CHANGING_TOOLS = ("apply_patch", "edit", "write")
"""Tools that change files. OpenClaw asks for no permission for them, so mode `deny` removes them."""
_DEFAULT_MCP_TRANSPORT = "sse"
"""Of a server with a URL and no `transport`: `openclaw mcp status` lists it as SSE."""


def users_config(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's configuration, which need not exist."""
    path = environ.get("OPENCLAW_CONFIG_PATH", "").strip()
    return _absolute(path, environ) if path else state_directory(environ) / "openclaw.json"


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of everything else that OpenClaw keeps for the user."""
    return _absolute(environ.get("OPENCLAW_STATE_DIR", "").strip() or "~/.openclaw", environ)


def _absolute(path: str, environ: Mapping[str, str]) -> Path:
    """Make a path absolute. `~` is OpenClaw's home, which may differ from the user's."""
    if path != "~" and not path.startswith("~/"):
        return Path(path).absolute()
    home = environ.get("OPENCLAW_HOME") or environ.get("HOME") or str(Path.home())
    return Path(os.path.expanduser(home)).absolute() / path[2:]


# -- MCP servers


def parse_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Parse an entry of `mcp.servers` that `openclaw mcp add` wrote."""
    return read_server(name, {**native, "type": text(native.get("transport")) or _DEFAULT_MCP_TRANSPORT})


def format_server(server: McpServer) -> dict[str, Any]:
    """Return the entry that `openclaw mcp add` writes for a server."""
    if server.transport == "stdio":
        return {"command": server.command or "", "args": list(server.args), "env": dict(server.env)}
    return {"url": server.url or "", "transport": server.transport, "headers": dict(server.headers)}


def is_enabled(native: Mapping[str, Any]) -> bool:
    """Return whether the server is enabled; `openclaw mcp configure --disable` sets `enabled` to false."""
    return native.get("enabled") is not False


# -- the configuration of one run


def run_config(options: RunOptions) -> dict[str, Any]:
    """Return the settings that take precedence over the user's in this run."""
    denied = (*_UNANSWERABLE_TOOLS, *options.disallowed_tools) + (
        _CHANGING_TOOLS if options.approval_mode == "deny" else ()
    )
    config: dict[str, Any] = {
        "agents": {"defaults": _agent_settings(options)},
        "gateway": {
            "auth": {"mode": "token", "token": "${OPENCLAW_GATEWAY_TOKEN}"},
            "controlUi": {"enabled": False},
            "mode": "local",
            "tls": {"enabled": False},
        },
        "logging": {"consoleLevel": "warn", "consoleStyle": "json"},
        "tools": {"deny": list(denied), "exec": {"mode": _command_mode(options)}},
        "update": {"checkOnStart": False},
    }
    if options.mcp_servers:
        config["mcp"] = {"servers": {server.name: _escaped(format_server(server)) for server in options.mcp_servers}}
    return merge_native_options("openclaw", config, options.native_options)


def _command_mode(options: RunOptions) -> str:
    """Return `tools.exec.mode`: whether commands need permission."""
    return "full" if options.approval_mode == "yolo" and options.on_approval_request is None else "ask"


def _agent_settings(options: RunOptions) -> dict[str, Any]:
    """Return the defaults of agents. Without the bootstrap, OpenClaw writes no files of its own to the workspace."""
    settings: dict[str, Any] = {"skipBootstrap": True, "workspace": _escaped_text(options.working_directory())}
    if options.model is not None:
        settings["model"] = {"primary": _escaped_text(options.model)}
    if options.fallback_model is not None:
        settings["model"] = {**settings.get("model", {}), "fallbacks": [_escaped_text(options.fallback_model)]}
    numbers = {"temperature": options.temperature, "maxTokens": options.output_limit}
    params = {name: value for name, value in numbers.items() if value is not None}
    return {**settings, "params": params} if params else settings


def _escaped(value: Any) -> Any:
    """Escape `${` in all texts of a JSON value."""
    match value:
        case str():
            return _escaped_text(value)
        case list():
            return [_escaped(item) for item in value]
        case dict():
            return {name: _escaped(item) for name, item in value.items()}
    return value


def _escaped_text(value: str) -> str:
    return value.replace("${", "$${")
