"""Command line of Copilot: headless; one-shot only where the headless protocol could not carry a secret.

Measured with 1.0.102. What the user has configured (instructions, MCP servers, skills) stays effective.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import nested_options
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters._dialects.tolerant import as_json
from agent_mux_adapters.copilot.requests import headless_context

JSON = "json"
HEADLESS = "headless"
ACP = "acp"

THINKING_KEYS = ("effort",)
"""Keys of `thinking_override`: the reasoning effort, which has more levels than ours."""
OWNED_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("--headless", "--stdio", "--acp", "--output-format", "--prompt", "-p", "--interactive", "-i",
                     "--silent", "-s"), "agent-mux reads its output"),
    **dict.fromkeys(("--yolo", "--allow-all", "--allow-all-tools", "--mode", "--plan", "--autopilot"),
                    "use the option `approval_mode`"),
    "--model": "use the option `model`",
    "--reasoning-effort": "use the options `thinking_effort` and `thinking_override`",
    **dict.fromkeys(("--resume", "-r", "--continue", "--session-id", "--connect"), "use the option `session_id`"),
    "--allow-tool": "use the option `allowed_tools`",
    **dict.fromkeys(("--deny-tool", "--excluded-tools"), "use the option `disallowed_tools`"),
    # The headless server ignores it: sessions have their own list.
    "--available-tools": "use the option `native_options` with `availableTools`",
    "--add-dir": "use the option `add_dirs`",
    "--attachment": "use the option `attachments`",
    "-C": "use the option `cwd`",
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""
_NO_UPDATE = "--no-auto-update"
_UNSUPPORTED = ("temperature", "top_p", "top_k", "thinking_budget_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessSpawn(SpawnArgs):
    """A spawn with the values from the environment that the codec sends to Copilot."""

    provider: dict[str, Any] | None = None
    model: str | None = None


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command line, the environment and the protocol for these options."""
    secrets = unsendable_secrets(environment.environ)
    if secrets and _fits_one_shot(options):
        return _one_shot(options, environment)
    return _headless(options, environment, secrets)


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the context of the codec, which for headless runs has additional fields."""
    context = default_context("copilot", options, spawn)
    if not isinstance(spawn, HeadlessSpawn):
        return context
    return replace(
        headless_context(context),
        provider=spawn.provider,
        model=spawn.model,
        approves_all=options.approval_mode == "yolo" and options.on_approval_request is None,
        answers_questions=_can_answer(options),
        streams_subagents=options.include_subagent_events,
        effort_override=options.thinking_override.get("effort"),
        allowed_tools=tuple(options.allowed_tools),
        disallowed_tools=tuple(options.disallowed_tools),
        native_options=nested_options(options.native_options),
        attachments=tuple(_attached(attachment) for attachment in options.attachments if attachment.url is None),
        images=(),
    )


def _headless(options: RunOptions, environment: SpawnEnvironment, secrets: tuple[str, ...]) -> SpawnArgs:
    provider = provider_of(environment.environ)
    login = ["--no-auto-login"] if provider is not None else []
    flags = ["--headless", _NO_UPDATE, "--stdio", *login, *mcp_flags(options.mcp_servers, environment.temp_dir)]
    flags += [f"--add-dir={path}" for path in options.add_dirs]
    return HeadlessSpawn(
        argv=(environment.executable, *flags),
        protocol=HEADLESS,
        files=mcp_files(options.mcp_servers),
        counts_turns=False,
        notes=(*_notes(options), *(_not_passed_on(name) for name in secrets)),
        provider=provider,
        model=options.model or model_of(environment.environ),
    )


def _one_shot(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return a spawn with the prompt on stdin. Tools run without approvals, and there are no questions."""
    flags = ["--output-format=json", "--yolo", "--no-color", _NO_UPDATE]
    flags += [f"--{name}={value}" for name, value in _values(options)]
    flags += [f"--allow-tool={name}" for name in options.allowed_tools]
    flags += [f"--deny-tool={name}" for name in options.disallowed_tools]
    flags += [f"--add-dir={path}" for path in options.add_dirs]
    flags += [f"--attachment={a.file_path}" for a in options.attachments if a.file_path is not None]
    return SpawnArgs(
        argv=(environment.executable, *flags, *mcp_flags(options.mcp_servers, environment.temp_dir)),
        protocol=JSON,
        stdin_text=options.prompt_text,
        files=mcp_files(options.mcp_servers),
        counts_turns=False,
        notes=tuple(_notes(options)),
    )


def _values(options: RunOptions) -> Iterator[tuple[str, str]]:
    if options.model is not None:
        yield "model", options.model
    effort = options.thinking_override.get("effort", options.thinking_effort)
    if effort is not None:
        yield "reasoning-effort", effort
    if options.session_id is not None:
        yield "resume", options.session_id


def _fits_one_shot(options: RunOptions) -> bool:
    """Return whether the options need nothing that `copilot -p` lacks."""
    wanted = (
        options.approval_mode != "yolo",
        options.interactive,
        options.on_approval_request is not None,
        options.on_input_required is not None,
        options.fork_session_id is not None,
        options.no_session,
        options.system_prompt is not None,
        options.output_schema is not None,
        bool(options.native_options),
        any(attachment.file_path is None for attachment in options.attachments),
    )
    return not any(wanted)


def _can_answer(options: RunOptions) -> bool:
    return options.on_input_required is not None or options.interactive or options.approval_mode == "prompt"


def _attached(attachment: Attachment) -> dict[str, str]:
    if attachment.base64 is not None:
        return {"type": "blob", "data": attachment.base64, "mimeType": attachment.mime_type or ""}
    path = attachment.file_path or ""
    return {"type": "file", "path": path, "displayName": path.rsplit("/", 1)[-1]}


def _notes(options: RunOptions) -> Iterator[str]:
    for name in _UNSUPPORTED:
        if getattr(options, name) is not None:
            yield f"copilot has no setting for {name}: ignored"
    if options.output_limit is not None:
        yield "copilot limits the output only of the user's own provider (COPILOT_PROVIDER_MAX_OUTPUT_TOKENS): ignored"
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "copilot appends further instructions to its own: system_prompt_mode 'prepend' acts as 'append'"
    links = sum(attachment.url is not None for attachment in options.attachments)
    if links:
        yield f"copilot does not support links: {links} attachment(s) are not sent"


def _not_passed_on(name: str) -> str:
    return f"the value of {name} is not passed on: headless copilot accepts it only as input, which would be recorded"


# -- MCP servers of one run: a file in addition to the user's configuration

MCP_FILE = "mcp.json"


def mcp_files(servers: Sequence[McpServer]) -> dict[str, str]:
    """Return the file for `--additional-mcp-config=@...`, which contains the servers' secrets."""
    if not servers:
        return {}
    return {MCP_FILE: as_json({"mcpServers": {server.name: mcp_entry(server) for server in servers}})}


def mcp_flags(servers: Sequence[McpServer], temp_dir: str) -> list[str]:
    """Return the flag with the file; empty when there are no servers."""
    return [f"--additional-mcp-config=@{temp_dir}/{MCP_FILE}"] if servers else []


def mcp_entry(server: McpServer) -> dict[str, Any]:
    """Return a server in the format of Copilot's MCP files."""
    if server.transport == "stdio":
        program = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        return {"type": "local", **program, "tools": ["*"]}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "url": server.url, "headers": dict(server.headers), "tools": ["*"]}


# -- the user's own model provider

_KEY = "COPILOT_PROVIDER_API_KEY"
_KEY_COMMAND = "COPILOT_PROVIDER_API_KEY_COMMAND"
_TOKEN = "COPILOT_PROVIDER_BEARER_TOKEN"  # noqa: S105  # the name of a variable
_URL = "COPILOT_PROVIDER_BASE_URL"
_HEADERS = "COPILOT_PROVIDER_HEADERS"
_OPENAI = "openai"
_TEXT_FIELDS = {
    "wireApi": "COPILOT_PROVIDER_WIRE_API",
    "transport": "COPILOT_PROVIDER_TRANSPORT",
    "modelId": "COPILOT_PROVIDER_MODEL_ID",
    "wireModel": "COPILOT_PROVIDER_WIRE_MODEL",
}
_NUMBER_FIELDS = {
    "maxPromptTokens": "COPILOT_PROVIDER_MAX_PROMPT_TOKENS",
    "maxOutputTokens": "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS",
}
_AZURE_VERSION = "COPILOT_PROVIDER_AZURE_API_VERSION"


def provider_of(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the user's own provider without its secrets; None when the user has none.

    See `copilot help providers`. `copilot -p` reads `COPILOT_PROVIDER_*`, but the headless runtime does not: its client
    sends the provider, and what the client sends is recorded. So the key stays in the environment, and the runtime gets
    a command that prints it.
    """
    if not environ.get(_URL):
        return None
    provider: dict[str, Any] = {"type": _type_of(environ), "baseUrl": environ[_URL]}
    provider |= {name: environ[variable] for name, variable in _TEXT_FIELDS.items() if environ.get(variable)}
    provider |= {name: int(environ[v]) for name, v in _NUMBER_FIELDS.items() if environ.get(v, "").isdecimal()}
    if environ.get(_AZURE_VERSION):
        provider["azure"] = {"apiVersion": environ[_AZURE_VERSION]}
    command = _key_command(environ)
    return provider if command is None else {**provider, "apiKeyCommand": command}


def unsendable_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables with secrets that could be sent only as recorded input.

    No command can supply additional headers, a password in the URL, or a bearer token that is not an API key.
    """
    if not environ.get(_URL):
        return ()
    found = [_HEADERS] if environ.get(_HEADERS) else []
    if environ.get(_TOKEN) and _type_of(environ) != _OPENAI:
        found.append(_TOKEN)
    if urlsplit(environ[_URL]).password is not None:
        found.append(_URL)
    return tuple(found)


def model_of(environ: Mapping[str, str]) -> str | None:
    """Return the model in the environment, None when unset. The headless runtime does not read it, so we send it."""
    return environ.get("COPILOT_MODEL") or environ.get("COPILOT_PROVIDER_MODEL_ID") or None


def _type_of(environ: Mapping[str, str]) -> str:
    return environ.get("COPILOT_PROVIDER_TYPE") or _OPENAI


def _key_command(environ: Mapping[str, str]) -> str | None:
    """Return a shell command that prints the key. The first variable that is set counts, as for `copilot -p`."""
    if environ.get(_TOKEN) and _type_of(environ) == _OPENAI:
        return f"printenv {_TOKEN}"  # OpenAI takes the key as a bearer token
    if environ.get(_KEY_COMMAND):
        return f'sh -c "${_KEY_COMMAND}"'
    return f"printenv {_KEY}" if environ.get(_KEY) else None
