"""Command line of Codex: `codex exec` for a single prompt without approvals, else `codex app-server`.

MCP servers of one run are `mcp_servers.*` settings on the command line, with every secret in the environment.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import FieldError, ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options, nested_options
from agent_mux.sdk.options import ENV_NAME, Attachment, McpServer, RunOptions
from agent_mux_adapters.codex.requests import PERMISSIONS, effort_of

EXEC = "exec-json"
APP_SERVER = "app-server"
SCHEMA_FILE = "output-schema.json"
THINKING_KEYS = ("effort", "summary")
"""Keys of `thinking_override`: `model_reasoning_effort`, which has more levels than ours, `model_reasoning_summary`."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("-c", "--config", "--enable", "--disable"), "use the option `native_options`"),
    "--json": "agent-mux reads its output",
    **dict.fromkeys(("-m", "--model"), "use the option `model`"),
    **dict.fromkeys(("-s", "--sandbox", "-a", "--ask-for-approval", "--approve-for-me", "--full-auto",
                     "--dangerously-bypass-approvals-and-sandbox", "--yolo"), "use the option `approval_mode`"),
    **dict.fromkeys(("-i", "--image"), "use the option `attachments`"),
    **dict.fromkeys(("-C", "--cd"), "use the option `cwd`"),
    "--worktree": "use the option `isolation`",
    "--add-dir": "use the option `add_dirs`",
    "--output-schema": "use the option `output_schema`",
    "--ephemeral": "use the option `no_session`",
    **dict.fromkeys(("--listen", "--stdio"), "agent-mux reads its output"),
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
# By default Codex waits for a network without limit; an unattended run has to fail instead.
_LIMITED_RETRIES = "features.unbounded_connection_retries=false"
# Codex disables questions by default, because `codex exec` has no way to answer them. The app-server has one.
_QUESTIONS = "features.default_mode_request_user_input=true"


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the environment and the protocol for these options."""
    config, secrets, notes = mcp_config(options.mcp_servers, environment.environ)
    config.insert(0, _LIMITED_RETRIES)
    if "summary" in options.thinking_override:
        config.append(f"model_reasoning_summary={toml_value(options.thinking_override['summary'])}")
    notes = (*notes, *_notes(options))
    if not needs_app_server(options):
        return _exec(options, environment, config, secrets, notes)
    if "CODEX_API_KEY" in environment.environ:
        missing = (
            "codex app-server does not read CODEX_API_KEY (only codex exec does): run `codex login --with-api-key`"
        )
        notes = (*notes, missing)
    if options.approval_mode == "prompt" or options.on_input_required is not None:
        config.append(_QUESTIONS)
    if options.add_dirs:
        config.append(f"sandbox_workspace_write.writable_roots={toml_value(options.add_dirs)}")
    config += native_config(options, config)
    argv = (environment.executable, "app-server", *_config_flags(config))
    return SpawnArgs(argv=argv, protocol=APP_SERVER, env=secrets, counts_turns=False, notes=notes)


def needs_app_server(options: RunOptions) -> bool:
    """Return whether the options need more than `codex exec` can do.

    It has no approvals, questions or streaming. It takes instructions only on the command line and images only from
    files. It reports neither the tokens that a resumed session had used before nor model calls, which a turn limit
    counts.
    """
    return (
        options.approval_mode != "yolo"
        or options.interactive
        or options.stream is True
        or options.on_approval_request is not None
        or options.on_input_required is not None
        or options.session_id is not None
        or options.fork_session_id is not None
        or options.system_prompt is not None
        or options.max_model_calls is not None
        or any(attachment.file_path is None for attachment in options.attachments)
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the context of the codec: images also as URLs, and no prompt if the spawn already contains it."""
    images = tuple(_location_of(attachment) for attachment in options.attachments if _is_image(attachment))
    effort = options.thinking_override.get("effort", options.thinking_effort)
    return replace(default_context("codex", options, spawn), images=images, thinking_effort=effort)


def _exec(
    options: RunOptions,
    environment: SpawnEnvironment,
    config: list[str],
    secrets: dict[str, str],
    notes: tuple[str, ...],
) -> SpawnArgs:
    effort = effort_of(options.thinking_override.get("effort", options.thinking_effort), options.model)
    if effort is not None:
        config.append(f"model_reasoning_effort={toml_string(effort)}")
    config += native_config(options, config)
    files = {}
    flags = ["--dangerously-bypass-approvals-and-sandbox"]
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.no_session:
        flags.append("--ephemeral")
    if options.output_schema is not None:
        files[SCHEMA_FILE] = json.dumps(dict(options.output_schema))
        flags.append(f"--output-schema={environment.temp_dir}/{SCHEMA_FILE}")
    flags += [f"--add-dir={path}" for path in options.add_dirs]
    flags += [f"--image={_location_of(attachment)}" for attachment in options.attachments if _is_image(attachment)]
    return SpawnArgs(
        argv=(environment.executable, "exec", "--json", "--skip-git-repo-check", *flags, *_config_flags(config), "-"),
        protocol=EXEC,
        env=secrets,
        stdin_text=options.prompt_text,
        files=files,
        notes=notes,
        extra_args_at=-1,  # before the dash, which makes it read the prompt from stdin
    )


def native_config(options: RunOptions, config: Sequence[str]) -> list[str]:
    """Return the `key=value` settings of the native options. Raises `ValidationError` for one that is set already.

    Some of ours are parameters of the protocol, which take precedence over settings: they conflict all the same.
    """
    if not options.native_options:
        return []
    has_rules = options.asks_everything and options.approval_mode != "plan"
    policy, sandbox = PERMISSIONS["rules" if has_rules else options.approval_mode]
    ours: dict[str, Any] = {"approval_policy": policy, "sandbox_mode": sandbox}
    ours |= {"model": options.model} if options.model is not None else {}
    effort = options.thinking_override.get("effort", options.thinking_effort)
    ours |= {"model_reasoning_effort": effort} if effort is not None else {}
    ours |= dict(setting.split("=", 1) for setting in config)
    nested = nested_options(ours)
    merge_native_options("codex", nested, options.native_options)  # raises for a conflict
    return [f"{path}={toml_value(value)}" for path, value in _leaves(nested_options(options.native_options))]


def _leaves(settings: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of each setting. A table with other keys than words is a value."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value and all(_BARE_KEY.fullmatch(str(inner)) for inner in value):
            yield from _leaves(value, f"{under}{key}.")
        else:
            yield f"{under}{key}", value


def _config_flags(config: list[str]) -> list[str]:
    return [f"--config={setting}" for setting in config]


def _location_of(attachment: Attachment) -> str:
    if attachment.base64 is not None:
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    return attachment.file_path or attachment.url or ""


def _is_image(attachment: Attachment) -> bool:
    if attachment.mime_type is not None:
        return attachment.mime_type.startswith("image/")
    return attachment.file_path is None or attachment.file_path.lower().endswith(_IMAGES)


def _notes(options: RunOptions) -> tuple[str, ...]:
    unsupported = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "max_output_tokens": options.output_limit,
        "thinking_budget_tokens": options.thinking_budget_tokens,
    }
    notes = [f"codex has no setting for {name}: ignored" for name, value in unsupported.items() if value is not None]
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        notes.append("codex appends further instructions to its own: system_prompt_mode 'prepend' acts as 'append'")
    others = sum(not _is_image(attachment) for attachment in options.attachments)
    if others:
        notes.append(f"codex supports only images: {others} attachment(s) are not sent")
    return tuple(notes)


# -- MCP servers of one run

_RESERVED_PREFIXES = ("CODEX_", "OPENAI_")
_SHELL = "/bin/sh"


def mcp_config(
    servers: Sequence[McpServer], environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """Return `key=value` settings, the variables that carry the secrets, and notes about unsupported servers.

    Codex passes to a server only those of its own variables that `env_vars` names, under the same name. A value that
    conflicts with a variable of Codex itself gets an alias, and a shell renames it when it starts the server.
    """
    config: list[str] = []
    variables: dict[str, str] = {}
    notes: list[str] = []
    for index, server in enumerate(servers):
        add = _stdio_server if server.transport == "stdio" else _http_server
        config += [f"mcp_servers.{server.name}.{setting}" for setting in add(index, server, environ, variables)]
        if server.transport == "sse":
            notes.append(f"codex has no SSE transport: the MCP server {server.name} is tried over streamable HTTP")
    return config, variables, tuple(notes)


def _stdio_server(index: int, server: McpServer, environ: Mapping[str, str], variables: dict[str, str]) -> list[str]:
    """Return the settings of a stdio server, and add its variables to `variables`."""
    wrong = [name for name in server.env if ENV_NAME.fullmatch(name) is None]
    if wrong:
        allowed = "names of letters, digits and underscores"
        raise ValidationError([FieldError(f"mcp_servers[{index}].env", wrong, allowed)])
    direct = {name: value for name, value in server.env.items() if _is_free(name, value, {**environ, **variables})}
    aliased = {name: value for name, value in server.env.items() if name not in direct}
    aliases = {name: f"AMUX_MCP_{index}_{name}" for name in aliased}
    variables |= direct | {aliases[name]: value for name, value in aliased.items()}
    command, args = server.command or "", list(server.args)
    if aliases:
        script = "; ".join(f'export {name}="${alias}"; unset {alias}' for name, alias in aliases.items())
        command, args = _SHELL, ["-c", f'{script}; exec "$0" "$@"', command, *args]
    names = [*direct, *aliases.values()]
    return [
        f"command={toml_string(command)}",
        f"args={toml_list(args)}",
        *([f"env_vars={toml_list(names)}"] if names else []),
    ]


def _http_server(index: int, server: McpServer, _: Mapping[str, str], variables: dict[str, str]) -> list[str]:
    """Return the settings of an HTTP server, and add the values of its headers to `variables`."""
    aliases = {header: f"AMUX_MCP_{index}_HEADER_{number}" for number, header in enumerate(server.headers)}
    variables |= {aliases[header]: value for header, value in server.headers.items()}
    headers = [f"env_http_headers={toml_table(aliases)}"] if aliases else []
    return [f"url={toml_string(server.url or '')}", *headers]


def _is_free(name: str, value: str, taken: Mapping[str, str]) -> bool:
    return taken.get(name, value) == value and (name in taken or not name.startswith(_RESERVED_PREFIXES))


# -- values of `--config key=value`, which Codex reads as TOML

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_DELETE = "\x7f"


def toml_string(text: str) -> str:
    """Format a TOML basic string. An unpaired surrogate, which TOML cannot represent, becomes "?"."""
    return '"' + "".join(map(_escape, text.encode("utf-8", "replace").decode())) + '"'


def toml_value(value: Any) -> str:
    """Format plain data as a TOML value. Raises `ValidationError` for null, which TOML lacks."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return toml_string(value)
        case Mapping():
            return "{" + ", ".join(f"{toml_string(str(key))} = {toml_value(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
    raise ValidationError(
        [FieldError("native_options", value, "values of TOML: texts, numbers, booleans, lists, tables")]
    )


def toml_list(texts: Sequence[str]) -> str:
    """Format a TOML array of strings."""
    return "[" + ", ".join(map(toml_string, texts)) + "]"


def toml_table(texts: Mapping[str, str]) -> str:
    """Format a TOML inline table of strings."""
    return "{" + ", ".join(f"{toml_string(key)} = {toml_string(value)}" for key, value in texts.items()) + "}"


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04X}" if character < " " or character == _DELETE else character
