"""How Copilot is started: headless, which loses nothing; one-shot only where a secret could not be passed on.

Every flag was tried on 1.0.102. What the user has configured (instructions, MCP servers, skills) stays in force.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from agent_mux.adapter import CodecContext, SpawnArgs, SpawnEnvironment, default_context
from agent_mux.options import Attachment, RunOptions
from agent_mux_adapters.copilot.mcp import mcp_files, mcp_flags
from agent_mux_adapters.copilot.provider import model_of, provider_of, unspeakable
from agent_mux_adapters.copilot.settings import extended

JSON = "json"
HEADLESS = "headless"
ACP = "acp"

_NO_UPDATE = "--no-auto-update"
_NO_KNOB = ("temperature", "top_p", "top_k", "thinking_budget_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessSpawn(SpawnArgs):
    """What the environment says that the codec has to pass on."""

    provider: dict[str, Any] | None = None
    model: str | None = None


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The command line, the environment and the protocol for these options."""
    secret = unspeakable(environment.environ)
    return _one_shot(options, environment) if secret and _is_plain(options) else _headless(options, environment, secret)


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What the codec knows."""
    context = default_context("copilot", options, spawn)
    if not isinstance(spawn, HeadlessSpawn):
        return context
    return replace(
        extended(context),
        provider=spawn.provider,
        model=spawn.model,
        asks_nobody=options.approval_mode == "yolo" and options.on_approval_request is None,
        answers_questions=_somebody_answers(options),
        shows_insides=options.include_subagent_events,
        attachments=tuple(_attached(attachment) for attachment in options.attachments if attachment.url is None),
        images=(),
    )


def _headless(options: RunOptions, environment: SpawnEnvironment, secret: tuple[str, ...]) -> SpawnArgs:
    provider = provider_of(environment.environ)
    login = ["--no-auto-login"] if provider is not None else []
    flags = ["--headless", _NO_UPDATE, "--stdio", *login, *mcp_flags(options.mcp_servers, environment.temp_dir)]
    return HeadlessSpawn(
        argv=(environment.executable, *flags),
        protocol=HEADLESS,
        files=mcp_files(options.mcp_servers),
        counts_turns=False,
        notes=(*_notes(options), *(_unsaid(name) for name in secret)),
        provider=provider,
        model=options.model or model_of(environment.environ),
    )


def _one_shot(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The prompt goes to stdin. Every tool runs unasked, and nobody can be asked anything."""
    flags = ["--output-format=json", "--yolo", "--no-color", _NO_UPDATE]
    flags += [f"--{name}={value}" for name, value in _values(options)]
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
    if options.thinking_effort is not None:
        yield "reasoning-effort", options.thinking_effort
    if options.session_id is not None:
        yield "resume", options.session_id


def _is_plain(options: RunOptions) -> bool:
    """Nothing is wanted that `copilot -p` does not have."""
    wanted = (
        options.approval_mode != "yolo",
        options.interactive,
        options.on_approval_request is not None,
        options.on_input_required is not None,
        options.fork_session_id is not None,
        options.no_session,
        options.system_prompt is not None,
        options.output_schema is not None,
        any(attachment.file_path is None for attachment in options.attachments),
    )
    return not any(wanted)


def _somebody_answers(options: RunOptions) -> bool:
    return options.on_input_required is not None or options.interactive or options.approval_mode == "prompt"


def _attached(attachment: Attachment) -> dict[str, str]:
    if attachment.base64 is not None:
        return {"type": "blob", "data": attachment.base64, "mimeType": attachment.mime_type or ""}
    path = attachment.file_path or ""
    return {"type": "file", "path": path, "displayName": path.rsplit("/", 1)[-1]}


def _notes(options: RunOptions) -> Iterator[str]:
    for name in _NO_KNOB:
        if getattr(options, name) is not None:
            yield f"copilot has no setting for {name}: ignored"
    if options.output_limit is not None:
        yield "copilot limits the output of the user's own provider only (COPILOT_PROVIDER_MAX_OUTPUT_TOKENS): ignored"
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        yield "copilot puts further instructions after its own: system_prompt_mode 'prepend' means 'append'"
    links = sum(attachment.url is not None for attachment in options.attachments)
    if links:
        yield f"copilot takes no links: {links} attachment(s) are not sent"


def _unsaid(name: str) -> str:
    return f"the value of {name} is not passed on: a headless copilot takes it only as input, which would be recorded"
