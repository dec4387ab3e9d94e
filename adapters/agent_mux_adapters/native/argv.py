"""Run options to the command of a program that speaks the agent protocol; the rest is in the first line on stdin.

See docs/reference/agent-protocol.md.
"""

import base64
import mimetypes
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, default_context
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux_adapters._dialects.agent_events import START, start_fields

AGENT_EVENTS = "agent-events"
PROGRAM = "amux-agent"
EXECUTABLE_VARIABLE = "AMUX_NATIVE_EXECUTABLE"
MODULE = "agent_loop"
CONTROL = "--control"
_OFFLINE_PROVIDERS = frozenset({"scripted", "replay"})
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
    return replace(
        default_context("native", options, spawn),
        prompt=_prompt(options),
        images=tuple(image for image in map(_image, options.attachments) if image),
        settings={START: start_fields(options)},
    )


def named_files(options: RunOptions) -> Mapping[str, str]:
    """Return the path in the models `scripted:PATH`, `replay:PATH` and `replay:strict:PATH`."""
    provider, _, path = (options.model or "").partition(":")
    path = path.removeprefix("strict:") if provider == "replay" else path
    is_file = path and provider in _OFFLINE_PROVIDERS and (provider, path) != ("scripted", "demo")
    return {"model": str(Path(options.working_directory(), path))} if is_file else {}


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
