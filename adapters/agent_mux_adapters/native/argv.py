"""Run options to the command of a program that speaks the agent protocol; the rest is in the first line on stdin.

See docs/reference/agent-protocol.md.
"""

import base64
import mimetypes
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import FieldError, ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options, nested_options
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux_adapters._dialects.agent_events import START, start_fields, start_message

AGENT_EVENTS = "agent-events"
PROGRAM = "amux-agent"
EXECUTABLE_VARIABLE = "AMUX_NATIVE_EXECUTABLE"
MODULE = "agent_loop"
CONTROL = "--control"
THINKING_KEYS = ("effort", "budget_tokens")
EFFORTS = ("off", "minimal", "low", "medium", "high", "max")
OWNED_FLAGS: Mapping[str, str] = {
    CONTROL: "agent-mux controls the program",
    "--json": "agent-mux reads its events",
    "--model": "use the option `model`",
    **dict.fromkeys(("--session", "--resume"), "use the option `session_id`"),
    "--fork": "use the option `fork_session_id`",
    "--no-session": "use the option `no_session`",
    **dict.fromkeys(("--approval-mode", "--mode"), "use the option `approval_mode`"),
    "--fallback-model": "use the option `fallback_model`",
    **dict.fromkeys(("--system-prompt-file", "--system-prompt-mode"), "use the option `system_prompt`"),
    **dict.fromkeys(("--max-model-calls", "--max-turns"), "use the option `max_model_calls`"),
    "--max-cost-usd": "use the option `max_cost_usd`",
    **dict.fromkeys(("--max-tokens-total", "--max-total-tokens"), "use the option `max_tokens_total`"),
    **dict.fromkeys(("--thinking-effort", "--thinking", "--thinking-budget-tokens"),
                    "use the options `thinking_effort` and `thinking_override`"),
    "--temperature": "use the option `temperature`",
    "--top-p": "use the option `top_p`",
    "--top-k": "use the option `top_k`",
    "--max-output-tokens": "use the option `max_output_tokens`",
    **dict.fromkeys(("--output-schema", "--output-schema-file"), "use the option `output_schema`"),
    "--image": "use the option `attachments`",
}  # fmt: skip
"""Flags that `extra_args` may not have, and what to use instead."""
_OFFLINE_PROVIDERS = frozenset({"scripted", "replay"})
_FILE_OPTIONS = frozenset({"agentFile", "agentsDocs", "openapi", "skills"})
_URLS = ("http://", "https://")
_BINARY = "application/octet-stream"


def executables() -> tuple[str, ...]:
    """Return where the embedded agent is: on PATH, beside our interpreter, or that interpreter with its module."""
    beside = Path(sys.executable).parent / PROGRAM
    return PROGRAM, str(beside), sys.executable


def build_spawn_args(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command of the run, or that of the embedded agent."""
    is_ours = not options.command
    argv = _agent(environment.executable) if is_ours else (environment.executable, *environment.arguments)
    return SpawnArgs(argv=argv, protocol=AGENT_EVENTS, counts_turns=is_ours)


def build_context(options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec's context, including the contents of images, because a codec reads no files."""
    override = _thinking_override(options)
    context = replace(
        default_context("native", options, spawn),
        prompt=_prompt(options),
        images=tuple(image for image in map(_image, options.attachments) if image),
        thinking_effort=override.get("effort", options.thinking_effort),
        settings={START: {**start_fields(options), **_budget(override)}},
    )
    if not options.native_options:
        return context
    _check_native_options(options)
    merged = merge_native_options("native", start_message(context), options.native_options)
    extra = {key: merged[key] for key in nested_options(options.native_options)}
    return replace(context, settings={START: {**context.settings[START], **extra}})


def _thinking_override(options: RunOptions) -> Mapping[str, Any]:
    """Return the thinking override. Raises `ValidationError` for a value that the program would refuse."""
    override = options.thinking_override
    effort, budget = override.get("effort", "off"), override.get("budget_tokens", 1)
    problems = []
    if effort not in EFFORTS:
        problems.append(FieldError("thinking_override.effort", effort, ", ".join(EFFORTS)))
    if not _is_count(budget):
        problems.append(FieldError("thinking_override.budget_tokens", budget, "a whole number >= 1"))
    if problems:
        raise ValidationError(problems)
    return override


def _budget(override: Mapping[str, Any]) -> dict[str, Any]:
    return {"thinkingBudgetTokens": override["budget_tokens"]} if "budget_tokens" in override else {}


def _check_native_options(options: RunOptions) -> None:
    """Raise `ValidationError` for a field of `start` that the embedded agent would ignore, or of another type.

    Another program may have fields of its own.
    """
    if options.command:
        return
    problems = [
        FieldError(
            f"native_options.{key}", value, _START_FIELDS.get(key, ("", f"one of {', '.join(_START_FIELDS)}"))[1]
        )
        for key, value in options.native_options.items()
        if key not in _START_FIELDS or not _START_FIELDS[key][0](value)
    ]
    if problems:
        raise ValidationError(problems)


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _are_services(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(each.get("document") if isinstance(each, Mapping) else each, str) for each in value
    )


_SANDBOX_MODES = ("auto", "off", "required")
_START_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "maxDuration": (_is_seconds, "seconds for each turn, more than 0"),
    "skills": (_are_texts, "a list of directories of skills"),
    "agentsDocs": (_are_texts, "a list of instruction files"),
    "agent": (_is_text, "the name of an agent: build, plan, or that of an agent file"),
    "agentFile": (_is_text, "the path of an agent file"),
    "subAgents": (_are_texts, "a list of agents to which tasks can be delegated"),
    "acceptEdits": (_is_flag, "true or false"),
    "openapi": (_are_services, "a list of OpenAPI documents: paths, URLs, or objects with `document`"),
    "sandbox": (lambda value: value in _SANDBOX_MODES, ", ".join(_SANDBOX_MODES)),
    "sandboxNetwork": (_is_flag, "true or false"),
    "trustProject": (_is_flag, "true or false"),
    "trustProjectSkills": (_is_flag, "true or false"),
    "skillShell": (_is_flag, "true or false"),
    "maxActiveSkills": (_is_count, "a whole number >= 1"),
}
"""Fields of `start` that only the embedded agent has: the check of a value, and the allowed values."""


def named_files(options: RunOptions) -> Mapping[str, str]:
    """Return the paths in models that are scripts or stored sessions, and those of files that native options name."""
    models = {"model": options.model, "fallback_model": options.fallback_model}
    named = {field: _played_file(model or "") for field, model in models.items()} | _named_by(options.native_options)
    directory = options.working_directory()
    return {field: str(Path(directory, path)) for field, path in named.items() if path}


def absolute_files(fields: Mapping[str, Any], absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that contain paths, as in `named_files`, with the paths made absolute."""
    found: dict[str, Any] = {}
    for name in ("model", "fallback_model"):
        model = fields.get(name)
        if isinstance(model, str) and (path := _played_file(model)):
            found[name] = model[: -len(path)] + absolute(path)
    settings = fields.get("native_options")
    if isinstance(settings, Mapping) and _FILE_OPTIONS & settings.keys():
        files = {key: _absolute_in(settings[key], absolute) for key in _FILE_OPTIONS & settings.keys()}
        found["native_options"] = {**settings, **files}
    return found


def _absolute_in(value: Any, absolute: Callable[[str], str]) -> Any:
    """Return the value of an option of files, such as a path or a list of paths, URLs and objects with a document."""
    match value:
        case str() if not value.startswith(_URLS):
            return absolute(value)
        case list() | tuple():
            return [_absolute_in(each, absolute) for each in value]
        case Mapping() if "document" in value:
            return {**value, "document": _absolute_in(value["document"], absolute)}
    return value


def _played_file(model: str) -> str:
    """Return the path in `scripted:PATH`, `replay:PATH` and `replay:strict:PATH`; empty for other models."""
    provider, _, path = model.partition(":")
    path = path.removeprefix("strict:") if provider == "replay" else path
    return path if provider in _OFFLINE_PROVIDERS and (provider, path) != ("scripted", "demo") else ""


def _named_by(native_options: Mapping[str, Any]) -> dict[str, str]:
    named = {}
    for key in _FILE_OPTIONS & native_options.keys():
        value = native_options[key]
        for index, each in enumerate(value if isinstance(value, list | tuple) else [value]):
            path = each.get("document") if isinstance(each, Mapping) else each
            if isinstance(path, str) and not path.startswith(_URLS):
                field = f"native_options.{key}" + (f"[{index}]" if value is not each else "")
                named[field] = os.path.expanduser(path) if key == "agentFile" else path
    return named


def _agent(executable: str) -> tuple[str, ...]:
    if executable == sys.executable:
        return executable, "-m", MODULE, CONTROL
    return executable, CONTROL


def _prompt(options: RunOptions) -> str:
    mentions = "\n".join(_mentions(options))
    return "\n\n".join(part for part in (options.prompt_text, mentions) if part)


def _mentions(options: RunOptions) -> Iterator[str]:
    """Mention attachments other than images, which the agent reads with its tools."""
    for attachment in options.attachments:
        if not _image(attachment):
            yield f"Attached file: {attachment.file_path or attachment.url or 'inline data that cannot be passed on'}"


def _image(attachment: Attachment) -> str:
    """Return an attached image as a `data:` URL; empty for other attachments and images without data."""
    path = attachment.file_path
    kind = attachment.mime_type or (mimetypes.guess_type(path)[0] if path is not None else None) or _BINARY
    if not kind.startswith("image/") or (path is None and attachment.base64 is None):
        return ""
    data = attachment.base64 or base64.b64encode(Path(path or "").read_bytes()).decode()
    return f"data:{kind};base64,{data}"
