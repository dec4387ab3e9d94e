"""How Hermes is started: its gateway, with the Python it is installed in; over ACP where that cannot be found.

There is no command line to speak of. Options go into the environment, into the opening of the session, and into
settings that lie over the user's own for this run only (`overlay.py`).
"""

from collections.abc import Iterator
from dataclasses import replace as replace_options

import msgspec
from msgspec.structs import replace

from agent_mux.adapter import CodecContext, SpawnArgs, SpawnEnvironment, default_context
from agent_mux.options import Attachment, RunOptions
from agent_mux_adapters._dialects.acp import acp_context
from agent_mux_adapters.hermes import overlay
from agent_mux_adapters.hermes.asks import NO_PLACE
from agent_mux_adapters.hermes.gateway_codec import GATEWAY
from agent_mux_adapters.hermes.launcher import python_of
from agent_mux_adapters.hermes.profiles import VARIABLE, chosen_directory
from agent_mux_adapters.hermes.setup import is_image_name, is_plain_model_name

AGENT = "hermes"
ACP = "acp"
MODULE = "tui_gateway.entry"
YOLO = "HERMES_YOLO_MODE"
NOT_INHERITED = ("HERMES_SESSION_ID", "HERMES_SESSION_KEY", "HERMES_TUI_SIDECAR_URL")
"""Set for programs that run inside a session of Hermes: this one is a session of its own."""
NO_KNOB = ("temperature", "top_p", "top_k", "thinking_budget_tokens")


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """The command line, the environment and the files for these options."""
    python = python_of(environment.executable)
    if python is None:
        return _over_acp(options, environment)
    laid_over = _laid_over(options, environment)
    turns = {} if options.max_turns is None else {"HERMES_TUI_MAX_TURNS": str(options.max_turns)}
    return SpawnArgs(
        # -P: a folder in the project must not be taken for a module of Hermes.
        argv=(python, "-P", "-m", MODULE),
        protocol=GATEWAY,
        env={
            **_variables(options, environment),
            **laid_over.env,
            **_profile(environment),
            "HERMES_TUI_TOOL_PROGRESS": "verbose",
            **turns,
        },
        unset_env=_not_inherited(options),
        files=laid_over.files,
        notes=(*_notes(options), *laid_over.notes),
    )


def codec_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What the codec knows: images by their path, or with their bytes."""
    if spawn.protocol == ACP:
        return acp_context(AGENT, options, spawn)
    images = tuple(place for attachment in options.attachments if (place := _place_of(attachment)) is not None)
    return replace(default_context(AGENT, options, spawn), images=images)


def is_asked(options: RunOptions) -> bool:
    """Somebody decides what may run."""
    return options.approval_mode != "yolo" or options.on_approval_request is not None


def _over_acp(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    why = (
        f"the Python of {environment.executable} could not be found, so hermes is spoken to over ACP, which tells "
        "less: no input of its own tools, and no end of those that read or write files."
    )
    laid_over = _laid_over(replace_options(options, system_prompt=None, mcp_servers=()), environment)  # sent
    return SpawnArgs(
        argv=(environment.executable, "acp"),
        protocol=ACP,
        env={**_variables(options, environment), **laid_over.env},
        unset_env=_not_inherited(options),
        files=laid_over.files,
        counts_turns=False,
        notes=(why, *_notes(options), *laid_over.notes),
    )


class _Overlay(msgspec.Struct, frozen=True):
    """What lies over the user's settings, or what could not be set."""

    env: dict[str, str] = {}
    files: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def _laid_over(options: RunOptions, environment: SpawnEnvironment) -> _Overlay:
    if overlay.is_taken(environment.environ):
        return _Overlay(notes=tuple(_left_out(options)))
    return _Overlay(
        env={overlay.VARIABLE: environment.temp_dir, overlay.DOLLAR: "$"},
        files={overlay.FILE: overlay.as_file(overlay.settings_of(options))},
    )


def _variables(options: RunOptions, environment: SpawnEnvironment) -> dict[str, str]:
    variables = {} if is_asked(options) else {YOLO: "1"}
    if options.approval_mode == "deny":
        variables["HERMES_WRITE_SAFE_ROOT"] = f"{environment.temp_dir}/{NO_PLACE}"
    return variables


def _profile(environment: SpawnEnvironment) -> dict[str, str]:
    """The `hermes` program looks up the chosen profile, and not the module behind it."""
    chosen = chosen_directory(environment.environ)
    return {} if chosen is None else {VARIABLE: str(chosen)}


def _not_inherited(options: RunOptions) -> tuple[str, ...]:
    return (*NOT_INHERITED, *((YOLO,) if is_asked(options) else ()))


def _place_of(attachment: Attachment) -> str | None:
    """How the image is named to the codec; None when it cannot be sent."""
    if attachment.base64 is not None and (attachment.mime_type or "").startswith("image/"):
        return f"data:{attachment.mime_type};base64,{attachment.base64}"
    path = attachment.file_path
    return path if path is not None and is_image_name(path) else None


def _notes(options: RunOptions) -> Iterator[str]:
    for name in NO_KNOB:
        if getattr(options, name) is not None:
            yield f"hermes has no setting for {name}; it was ignored."
    if options.system_prompt is not None and options.system_prompt_mode != "append":
        yield f"hermes puts instructions behind its own: mode {options.system_prompt_mode!r} means 'append'."
    if options.approval_mode == "deny":
        yield "hermes runs no commands and no scripts and changes no files in mode 'deny'; other tools it asks nobody."
    is_stored = options.session_id is not None or options.fork_session_id is not None
    if is_stored and options.model is not None and not is_plain_model_name(options.model):
        yield f"hermes would take {options.model!r} for more than the name of a model; the session keeps its own."
    unsent = sum(_place_of(attachment) is None for attachment in options.attachments)
    if unsent:
        yield f"{unsent} of the attachments were left out: hermes takes images, by path or with their bytes."


def _left_out(options: RunOptions) -> Iterator[str]:
    names = ", ".join(overlay.unsaid(options))
    if names:
        yield f"an administrator manages hermes here ({overlay.VARIABLE}); left as it is: {names}."
