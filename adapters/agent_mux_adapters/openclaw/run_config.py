"""What a run wants to be configured: for this run only, laid over the user's own configuration, which is not touched.

`launching` puts it together. Texts of ours that hold `${` are escaped: OpenClaw would put variables in their place.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.options import RunOptions
from agent_mux_adapters.openclaw import mcp_files

DEFAULTS: Mapping[str, Any] = {
    "agents": {"defaults": {"sandbox": {"mode": "off"}}},
    "skills": {"load": {"watch": False}},
    "tools": {"profile": "coding", "fs": {"workspaceOnly": True}},
}
"""Where the user has configured nothing: what `openclaw agent exec` takes, so that both ways work alike."""
UNANSWERABLE = ("ask_user",)
"""Tools that wait for a person, whose answer ACP has no way for: they would wait for a quarter of an hour."""
CHANGING = ("apply_patch", "edit", "write")
"""Tools that change files. OpenClaw asks about none of them, so that denying means to do without."""


def run_config(options: RunOptions) -> dict[str, Any]:
    """What the run needs, whatever the user has configured."""
    denied = UNANSWERABLE + (CHANGING if options.approval_mode == "deny" else ())
    config: dict[str, Any] = {
        "agents": {"defaults": _agent(options)},
        "gateway": {
            "auth": {"mode": "token", "token": "${OPENCLAW_GATEWAY_TOKEN}"},
            "controlUi": {"enabled": False},
            "mode": "local",
            "tls": {"enabled": False},
        },
        "logging": {"consoleLevel": "warn", "consoleStyle": "json"},
        "tools": {"deny": list(denied), "exec": {"mode": _level(options)}},
        "update": {"checkOnStart": False},
    }
    if options.mcp_servers:
        config["mcp"] = {"servers": {server.name: _escaped(mcp_files.write(server)) for server in options.mcp_servers}}
    return config


def _level(options: RunOptions) -> str:
    """`tools.exec.mode`: whether somebody is asked about commands."""
    return "full" if options.approval_mode == "yolo" and options.on_approval_request is None else "ask"


def users_config(environ: Mapping[str, str]) -> Path:
    """Where the user's own configuration is, or would be."""
    chosen = environ.get("OPENCLAW_CONFIG_PATH", "").strip()
    return _absolute(chosen, environ) if chosen else state_directory(environ) / "openclaw.json"


def state_directory(environ: Mapping[str, str]) -> Path:
    """Where everything else is that OpenClaw keeps for the user."""
    return _absolute(environ.get("OPENCLAW_STATE_DIR", "").strip() or "~/.openclaw", environ)


def _absolute(path: str, environ: Mapping[str, str]) -> Path:
    """OpenClaw's home may be another one than the user's."""
    if path != "~" and not path.startswith("~/"):
        return Path(path).absolute()
    home = environ.get("OPENCLAW_HOME") or environ.get("HOME") or str(Path.home())
    return Path(home).expanduser().absolute() / path[2:]


def _agent(options: RunOptions) -> dict[str, Any]:
    """The agent's own settings. Without the bootstrap it leaves no files of its own in the workspace."""
    settings: dict[str, Any] = {"skipBootstrap": True, "workspace": _literal(options.working_directory())}
    if options.model is not None:
        settings["model"] = {"primary": _literal(options.model)}
    numbers = {"temperature": options.temperature, "maxTokens": options.output_limit}
    given = {name: value for name, value in numbers.items() if value is not None}
    return {**settings, "params": given} if given else settings


def _escaped(value: Any) -> Any:
    """The same, where every text is what it says."""
    match value:
        case str():
            return _literal(value)
        case list():
            return [_escaped(item) for item in value]
        case dict():
            return {name: _escaped(item) for name, item in value.items()}
    return value


def _literal(value: str) -> str:
    return value.replace("${", "$${")
