"""Input of the program: lines of standard input, files that flags name, and the prompt and settings made of them."""

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from agent_loop.cli.arguments import Arguments
from agent_loop.cli.errors import UsageError
from agent_loop.cli.protocol import MAX_LINE, StartCommand
from agent_loop.messages import Image, Shown, Text, UserMessage
from agent_loop.tools.builtin.read import MAX_IMAGE_BYTES, image_block, image_type_of
from agent_mux.cli import streams
from agent_mux.cli.terminal import is_terminal

MAX_FILE_BYTES = MAX_IMAGE_BYTES


async def read_lines(descriptor: int, longest: int = MAX_LINE) -> AsyncGenerator[bytes | None, None]:
    """Yield the lines of a descriptor that are not blank, and None for each line longer than `longest` bytes.

    Reading blocks neither the event loop nor the exit of the program, whatever kind of file the descriptor is.
    """
    async with aclosing(streams.read_lines(descriptor, longest)) as lines:
        async for line in lines:
            if line is None or line.strip():
                yield line


async def read_all(descriptor: int, max_bytes: int = MAX_LINE) -> bytes:
    """Read until the end of input, or until more than `max_bytes` bytes were read."""
    whole = bytearray()
    while len(whole) <= max_bytes and (chunk := await streams.read_some(descriptor)):
        whole += chunk
    return bytes(whole)


def read_image(path: str) -> Image:
    """Read an image file. Raises `UsageError` if it is not an image."""
    data = _read_bytes(path)
    kind = image_type_of(data)  # by its content: names may be wrong
    if kind is None:
        raise UsageError(f"{path} is not a supported image; use a PNG, JPEG, GIF or WebP file")
    return image_block(data, kind)


def read_text(path: str) -> str:
    """Read a text file. Raises `UsageError` if it is not UTF-8."""
    try:
        return _read_bytes(path).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text") from None


def read_schema(path: str) -> dict[str, Any]:
    """Read a JSON Schema from a file. Raises `UsageError` if it is not a JSON object."""
    try:
        value = msgspec.json.decode(_read_bytes(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} is not a JSON Schema: it must be an object")
    return value


async def read_prompt(arguments: Arguments) -> UserMessage:
    """Return the prompt of a command line with its images; without one, read it from standard input.

    Raises `UsageError` if there is no prompt, it is empty, or an image cannot be read.
    """
    text = arguments.prompt
    if text is None:
        if is_terminal(sys.stdin):
            raise UsageError("no prompt: pass one, for example: amux-agent 'list the files'")
        text = (await read_all(0)).decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the prompt is empty: pass a task for the agent")
    content: list[Shown] = [*map(read_image, arguments.images), Text(text)]
    return UserMessage(content=tuple(content))


def settings_of(arguments: Arguments) -> StartCommand:
    """Return the settings of a command line. Raises `UsageError` for files that cannot be read."""
    fields = dict(arguments.flags)
    if arguments.system_prompt_file is not None:
        fields["system_prompt"] = read_text(arguments.system_prompt_file)
    if arguments.output_schema_file is not None:
        fields["output_schema"] = read_schema(arguments.output_schema_file)
    return StartCommand(**fields)


def with_flags(start: StartCommand, arguments: Arguments) -> StartCommand:
    """Return the settings of a `start` line, with those of the command line where the line has none."""
    default = StartCommand()
    unset = {name: value for name, value in arguments.flags.items() if getattr(start, name) == getattr(default, name)}
    return msgspec.structs.replace(start, **unset)


def _read_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} has more than {MAX_FILE_BYTES:,} bytes")
    return data
