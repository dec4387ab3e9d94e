"""How Codex is started: `codex exec` for a prompt that nobody has to answer for, else `codex app-server`."""

import json

from msgspec.structs import replace

from agent_mux.adapter import CodecContext, SpawnArgs, SpawnEnvironment, default_context
from agent_mux.options import Attachment, RunOptions
from agent_mux_adapters.codex.mcp import mcp_config
from agent_mux_adapters.codex.settings import effort_of
from agent_mux_adapters.codex.toml import toml_string

EXEC = "exec-json"
APP_SERVER = "app-server"
SCHEMA_FILE = "output-schema.json"
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
# By default Codex waits for a network without end; a run that nobody watches has to fail.
_BOUNDED = "features.unbounded_connection_retries=false"
# Off by default, because nobody can answer a question of `codex exec`; here somebody can.
_QUESTIONS = "features.default_mode_request_user_input=true"


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The command line, the environment and the protocol for these options."""
    config, secrets, notes = mcp_config(options.mcp_servers, environment.environ)
    config.insert(0, _BOUNDED)
    notes = (*notes, *_notes(options))
    if not needs_app_server(options):
        return _exec(options, environment, config, secrets, notes)
    if "CODEX_API_KEY" in environment.environ:
        missing = (
            "codex app-server does not read CODEX_API_KEY (only codex exec does): run `codex login --with-api-key`"
        )
        notes = (*notes, missing)
    if _may_be_asked(options):
        config.append(_QUESTIONS)
    argv = (environment.executable, "app-server", *_bound(config))
    return SpawnArgs(argv=argv, protocol=APP_SERVER, env=secrets, counts_turns=False, notes=notes)


def needs_app_server(options: RunOptions) -> bool:
    """Whether the run needs more than `codex exec` has.

    It asks nothing and streams nothing, takes instructions only on the command line and images only from files, does
    not say how many tokens a resumed session had used before, and does not tell its model calls, to be counted.
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
        or options.max_turns is not None
        or any(attachment.file_path is None for attachment in options.attachments)
    )


def _may_be_asked(options: RunOptions) -> bool:
    return options.approval_mode == "prompt" or options.on_input_required is not None


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What the codec knows: images also as URLs, and no prompt where it is already on its way."""
    images = tuple(_place_of(attachment) for attachment in options.attachments if _is_image(attachment))
    return replace(default_context("codex", options, spawn), images=images)


def _exec(
    options: RunOptions,
    environment: SpawnEnvironment,
    config: list[str],
    secrets: dict[str, str],
    notes: tuple[str, ...],
) -> SpawnArgs:
    effort = effort_of(options.thinking_effort, options.model)
    if effort is not None:
        config.append(f"model_reasoning_effort={toml_string(effort)}")
    files = {}
    flags = ["--dangerously-bypass-approvals-and-sandbox"]
    if options.model is not None:
        flags.append(f"--model={options.model}")
    if options.no_session:
        flags.append("--ephemeral")
    if options.output_schema is not None:
        files[SCHEMA_FILE] = json.dumps(dict(options.output_schema))
        flags.append(f"--output-schema={environment.temp_dir}/{SCHEMA_FILE}")
    flags += [f"--image={_place_of(attachment)}" for attachment in options.attachments if _is_image(attachment)]
    return SpawnArgs(
        argv=(environment.executable, "exec", "--json", "--skip-git-repo-check", *flags, *_bound(config), "-"),
        protocol=EXEC,
        env=secrets,
        stdin_text=options.prompt_text,
        files=files,
        notes=notes,
    )


def _bound(config: list[str]) -> list[str]:
    return [f"--config={setting}" for setting in config]


def _place_of(attachment: Attachment) -> str:
    if attachment.base64 is not None:
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    return attachment.file_path or attachment.url or ""


def _is_image(attachment: Attachment) -> bool:
    if attachment.mime_type is not None:
        return attachment.mime_type.startswith("image/")
    return attachment.file_path is None or attachment.file_path.lower().endswith(_IMAGES)


def _notes(options: RunOptions) -> tuple[str, ...]:
    unheard = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "max_output_tokens": options.output_limit,
        "thinking_budget_tokens": options.thinking_budget_tokens,
    }
    notes = [f"codex has no setting for {name}: ignored" for name, value in unheard.items() if value is not None]
    if options.system_prompt is not None and options.system_prompt_mode == "prepend":
        notes.append("codex puts further instructions after its own: system_prompt_mode 'prepend' means 'append'")
    others = sum(not _is_image(attachment) for attachment in options.attachments)
    if others:
        notes.append(f"codex takes images only: {others} attachment(s) are not sent")
    return tuple(notes)
