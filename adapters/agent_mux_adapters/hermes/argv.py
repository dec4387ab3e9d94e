"""How Hermes is started: its gateway with the Python that it is installed in; ACP where that Python is not found.

The gateway has no command line. Options go into the environment, into the request that opens the session, and into
settings that override the user's own for this run only.

For those settings Hermes has a layer above the user's configuration, intended for administrators: a directory named by
`HERMES_MANAGED_DIR`, else `/etc/hermes`. Hermes only reads it, so none of our settings ends up in the user's files.
Where an administrator uses the layer, it stays unchanged, and a note names the options that could not be set.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace as replace_options
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.sdk import CapabilityError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux_adapters._dialects.acp import acp_context
from agent_mux_adapters.hermes.approvals import DENIED_ROOT
from agent_mux_adapters.hermes.gateway_codec import GATEWAY
from agent_mux_adapters.hermes.mcp_servers import format_server
from agent_mux_adapters.hermes.paths import HOME_VARIABLE, python_of, selected_profile_directory
from agent_mux_adapters.hermes.session_setup import is_image_name, is_plain_model_name

AGENT = "hermes"
ACP = "acp"
THINKING_KEYS = ("effort",)
"""Keys of `thinking_override`: `agent.reasoning_effort`, which has more levels than ours."""
_GATEWAY_MODULE = "tui_gateway.entry"
_YOLO_VARIABLE = "HERMES_YOLO_MODE"
_UNSUPPORTED = ("temperature", "top_p", "top_k", "thinking_budget_tokens")
MANAGED_VARIABLE = "HERMES_MANAGED_DIR"
MANAGED_DIRECTORY = Path("/etc/hermes")
SETTINGS_FILE = "config.yaml"
APPROVAL_TIMEOUT = 7 * 24 * 3600  # seconds; by default Hermes denies a permission request after one minute
_MCP_START_TIMEOUT = 30.0  # seconds; by default tools that are not ready after 1.5 s are missing in the first turn
_DOLLAR_VARIABLE = "AGENT_MUX_DOLLAR"
_EVERY_COMMAND = "*"


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the environment and the files for these options."""
    python = python_of(environment.executable)
    if python is None:
        return _acp_spawn_args(options, environment)
    overrides = _overrides(options, environment)
    turn_limit = {} if options.max_model_calls is None else {"HERMES_TUI_MAX_TURNS": str(options.max_model_calls)}
    return SpawnArgs(
        # -P: a folder in the project must not be taken for a module of Hermes.
        argv=(python, "-P", "-m", _GATEWAY_MODULE),
        protocol=GATEWAY,
        env={
            **_variables(options, environment),
            **overrides.env,
            **_profile(environment),
            "HERMES_TUI_TOOL_PROGRESS": "verbose",
            **turn_limit,
        },
        unset_env=_unset_variables(options),
        files=overrides.files,
        notes=(*_notes(options), *overrides.notes),
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the context of the codec, with images as paths or data URLs."""
    if spawn.protocol == ACP:
        return acp_context(AGENT, options, spawn)
    images = tuple(image for attachment in options.attachments if (image := _image_of(attachment)) is not None)
    effort = options.thinking_override.get("effort", options.thinking_effort)
    return replace(default_context(AGENT, options, spawn), images=images, thinking_effort=effort)


def is_asked(options: RunOptions) -> bool:
    """Return whether the consumer decides about permission requests."""
    return options.approval_mode != "yolo" or options.on_approval_request is not None


def _acp_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    reason = (
        f"the Python of {environment.executable} could not be found, so hermes runs over ACP, which reports "
        "less: no input of its own tools, and no end of tools that read or write files."
    )
    # ACP sends the system prompt and the MCP servers itself.
    overrides = _overrides(replace_options(options, system_prompt=None, mcp_servers=()), environment)
    return SpawnArgs(
        argv=(environment.executable, "acp"),
        protocol=ACP,
        env={**_variables(options, environment), **overrides.env},
        unset_env=_unset_variables(options),
        files=overrides.files,
        counts_turns=False,
        notes=(reason, *_notes(options), *overrides.notes),
    )


# -- settings above the user's configuration


class _Overrides(msgspec.Struct, frozen=True):
    """The settings of a run as files and variables, or notes on what could not be set."""

    env: dict[str, str] = {}
    files: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def _overrides(options: RunOptions, environment: SpawnEnvironment) -> _Overrides:
    if is_managed(environment.environ):
        if options.native_options:
            hint = f"an administrator manages hermes here ({MANAGED_VARIABLE})"
            raise CapabilityError(AGENT, "the option native_options", options.model, hint=hint)
        return _Overrides(notes=tuple(_managed_notes(options)))
    return _Overrides(
        env={MANAGED_VARIABLE: environment.temp_dir, _DOLLAR_VARIABLE: "$"},
        files={SETTINGS_FILE: format_settings(settings_of(options))},
    )


def is_managed(environ: Mapping[str, str]) -> bool:
    """Return whether an administrator uses the layer of settings above the user's."""
    return bool(environ.get(MANAGED_VARIABLE, "").strip()) or MANAGED_DIRECTORY.is_dir()


def settings_of(options: RunOptions) -> dict[str, Any]:
    """Return the settings for these options, with the keys of `config.yaml`."""
    approvals: dict[str, Any] = {"mode": "manual", "timeout": APPROVAL_TIMEOUT}
    if options.approval_mode == "deny":
        approvals["deny"] = [_EVERY_COMMAND]  # otherwise commands that look harmless run without a request
    settings: dict[str, Any] = {"approvals": approvals}
    effort = options.thinking_override.get("effort", options.thinking_effort)
    agent = {"system_prompt": options.system_prompt, "reasoning_effort": effort}
    if given := {name: value for name, value in agent.items() if value is not None}:
        settings["agent"] = given
    if options.output_limit is not None:
        settings["model"] = {"max_tokens": options.output_limit}
    if options.mcp_servers:
        settings["mcp_servers"] = {server.name: format_server(server) for server in options.mcp_servers}
        settings["mcp_discovery_timeout"] = _MCP_START_TIMEOUT
    return merge_native_options(AGENT, settings, options.native_options)


def format_settings(settings: Mapping[str, Any]) -> str:
    """Return the content of `config.yaml`: JSON is YAML.

    Hermes replaces `${NAME}` by the variable, once. A variable that contains a dollar sign keeps a literal `${`.
    """
    return json.dumps(settings).replace("${", f"${{{_DOLLAR_VARIABLE}}}{{")


def _managed_notes(options: RunOptions) -> Iterator[str]:
    is_stored = options.session_id is not None or options.fork_session_id is not None
    is_needed = {
        "approval_mode": options.approval_mode != "yolo",
        "system_prompt": options.system_prompt is not None,
        "thinking_effort": options.thinking_effort is not None and is_stored,
        "max_output_tokens": options.output_limit is not None,
        "mcp_servers": bool(options.mcp_servers),
    }
    names = ", ".join(name for name, needed in is_needed.items() if needed)
    if names:
        yield f"an administrator manages hermes here ({MANAGED_VARIABLE}); not changed: {names}."


# -- the environment


def _variables(options: RunOptions, environment: SpawnEnvironment) -> dict[str, str]:
    variables = {} if is_asked(options) else {_YOLO_VARIABLE: "1"}
    if options.approval_mode == "deny":
        variables["HERMES_WRITE_SAFE_ROOT"] = f"{environment.temp_dir}/{DENIED_ROOT}"
    return variables


def _profile(environment: SpawnEnvironment) -> dict[str, str]:
    """Name the selected profile's directory: only the `hermes` program looks it up, the gateway module does not."""
    selected = selected_profile_directory(environment.environ)
    return {} if selected is None else {HOME_VARIABLE: str(selected)}


def _unset_variables(options: RunOptions) -> tuple[str, ...]:
    return (_YOLO_VARIABLE,) if is_asked(options) else ()


def _image_of(attachment: Attachment) -> str | None:
    """Return the image as a path or a data URL; None when it cannot be sent."""
    if attachment.base64 is not None and (attachment.mime_type or "").startswith("image/"):
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    path = attachment.file_path
    return path if path is not None and is_image_name(path) else None


def _notes(options: RunOptions) -> Iterator[str]:
    for name in _UNSUPPORTED:
        if getattr(options, name) is not None:
            yield f"hermes has no setting for {name}; it was ignored."
    if options.system_prompt is not None and options.system_prompt_mode != "append":
        yield f"hermes appends instructions to its own: mode {options.system_prompt_mode!r} works like 'append'."
    if options.approval_mode == "deny":
        yield "hermes runs no commands and no scripts and changes no files in mode 'deny'; other tools run unasked."
    is_stored = options.session_id is not None or options.fork_session_id is not None
    if is_stored and options.model is not None and not is_plain_model_name(options.model):
        yield f"hermes would not read {options.model!r} as a plain model name; the session keeps its own model."
    unsent = sum(_image_of(attachment) is None for attachment in options.attachments)
    if unsent:
        yield f"{unsent} attachment(s) omitted: hermes accepts only images, by path or as data."
