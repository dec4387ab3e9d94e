"""Deterministic splitting of an answer into chunks, for providers without a network."""

import re
from collections.abc import Iterator, Sequence

import anyio.lowlevel
import msgspec

from agent_loop.messages import AssistantMessage, Block, Text, Thinking, ToolCall
from agent_loop.providers.provider import Chunk, OnChunk, TextChunk, ThinkingChunk, ToolCallChunk

TEXT_CHUNK = 24
"""Minimum characters of a text chunk, which ends at the next end of a word."""
ARGUMENT_CHUNK = 32
"""Characters of a chunk of arguments."""

_WORDS = re.compile(rf"(?s).{{1,{TEXT_CHUNK}}}\S*\s*")


def text_pieces(text: str) -> list[str]:
    """Return the text in pieces of whole words."""
    return _WORDS.findall(text)


def argument_text(call: ToolCall) -> str:
    """Return the arguments as JSON text, as the model wrote them if known."""
    return call.raw_arguments or msgspec.json.encode(call.arguments).decode()


def call_chunks(call: ToolCall, fragments: Sequence[str] = ()) -> Iterator[ToolCallChunk]:
    """Yield the chunks of a tool call: first an empty one that starts the call."""
    text = argument_text(call)
    pieces = fragments or [text[at : at + ARGUMENT_CHUNK] for at in range(0, len(text), ARGUMENT_CHUNK)]
    for delta in ("", *pieces):
        yield ToolCallChunk(call.id, call.name, delta)


def block_chunks(block: Block) -> Iterator[Chunk]:
    """Yield the chunks of a block; nothing for blocks that are not streamed."""
    match block:
        case Text(text):
            yield from map(TextChunk, text_pieces(text))
        case Thinking(text):
            yield from map(ThinkingChunk, text_pieces(text))
        case ToolCall():
            yield from call_chunks(block)
        case _:
            return


def message_chunks(messages: Sequence[AssistantMessage]) -> Iterator[Chunk]:
    """Yield the chunks of all blocks of these messages."""
    for message in messages:
        for block in message.content:
            yield from block_chunks(block)


async def emit_chunk(chunk: Chunk, on_chunk: OnChunk) -> None:
    """Await `on_chunk` after a checkpoint at which the answer can be cancelled."""
    await anyio.lowlevel.checkpoint()
    await on_chunk(chunk)
