"""Messages and texts that stand for omitted messages: shortened outputs, digests, stand-ins, and the summary prompt."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agent_loop.context.estimation import BYTES_PER_TOKEN, estimate_tokens
from agent_loop.context.notes import REQUEST, KeptNotes, parse_notes
from agent_loop.messages import (
    AssistantMessage,
    Image,
    Message,
    Shown,
    Text,
    ToolMessage,
    UserMessage,
    is_user_input,
    user,
)

MAX_WORDS = 2_000
SUMMARY_REQUEST = (
    f"Summarize this conversation in at most {MAX_WORDS:,} words, for the agent, which continues the work and sees "
    "nothing else of the earlier messages. State what the user wants, in their words where the words matter; what was "
    "decided and why; which files were read, made or changed, and how; what commands and tests showed; what failed; "
    "and what is still to be done. No preface."
)


LINE_CHARACTERS = 200
"""Average characters per line: bounds an output that has few but very long lines."""
DIGEST_CHARACTERS = 160
"""Characters of one turn in a digest."""
REQUEST_CHARACTERS = 2_000
"""Characters that are kept of the latest request when its message is omitted."""

NO_NOTES = KeptNotes()
SUMMARY = (
    "[Earlier messages were replaced by this summary, so that the conversation fits the context window. "
    "It reports earlier messages and is not a new request.]"
)
MARKER = "[Earlier messages were left out here, so that the conversation fits the context window.]"


def shorten(message: Message, max_lines: int, max_characters: int | None = None) -> Message:
    """Return a tool result with at most `max_lines` lines, from its beginning and its end; other messages unchanged."""
    if not isinstance(message, ToolMessage):
        return message
    most = max_lines * LINE_CHARACTERS if max_characters is None else max_characters
    content = tuple(_shortened(block, max_lines, most) for block in message.content)
    return message if content == message.content else msgspec.structs.replace(message, content=content)


def without_images(message: Message) -> Message:
    """Return a tool result with a text in place of each image; other messages unchanged."""
    if not isinstance(message, ToolMessage) or not any(isinstance(each, Image) for each in message.content):
        return message
    content = tuple(Text("[Image left out.]") if isinstance(each, Image) else each for each in message.content)
    return msgspec.structs.replace(message, content=content)


def _shortened(block: Shown, max_lines: int, max_characters: int) -> Shown:
    if not isinstance(block, Text):
        return block
    lines = block.text.split("\n")
    text = block.text
    if len(lines) > max_lines:
        head, tail = (max_lines + 1) // 2, max_lines // 2
        left_out = len(lines) - head - tail
        text = "\n".join((*lines[:head], f"[... {left_out} lines left out ...]", *lines[len(lines) - tail :]))
    if len(text) > max_characters:
        half = max_characters // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[len(text) - half :]}"
    return Text(text) if estimate_tokens(text) < estimate_tokens(block.text) else block


def digest(messages: Iterable[Message], max_tokens: int) -> str:
    """Return one line per turn without tool outputs; the oldest lines are dropped if they are too many."""
    remaining, kept = max_tokens, []
    for line in reversed([line for message in messages for line in _lines(message)]):
        remaining -= estimate_tokens(line + "\n")
        if remaining < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def _lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(origin="compaction"):
            yield from filter(None, parse_stand_in(message)[0].split("\n"))
        case UserMessage():
            yield f"- user: {_one_line(message.text)}"
        case AssistantMessage():
            tools = ", ".join(call.name for call in message.tool_calls)
            body = filter(None, (_one_line(message.text), _one_line(f"[called {tools}]") if tools else ""))
            yield f"- assistant: {' '.join(body)}"
        case ToolMessage(is_error=True, name=name):
            yield f"- {_one_line(name)} failed"
        case _:
            return


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * DIGEST_CHARACTERS].split())
    return line if len(line) <= DIGEST_CHARACTERS else line[: DIGEST_CHARACTERS - 3] + "..."


def parse_stand_in(message: UserMessage) -> tuple[str, str]:
    """Return the summary and the latest request of a stand-in message; each may be empty."""
    body, _, request = message.text.partition(REQUEST)
    return parse_notes(body)[0].partition("\n")[2], request


def latest_request(middle: Sequence[Message], recent: Sequence[Message]) -> str:
    """Return the user's latest request if the middle contains it or an earlier stand-in quotes it, else ""."""
    if any(is_user_input(each) for each in recent):
        return ""
    for message in reversed(middle):
        if isinstance(message, UserMessage):
            request = parse_stand_in(message)[1] if message.origin == "compaction" else message.text
            if request and (message.origin == "compaction" or is_user_input(message)):
                return request[:REQUEST_CHARACTERS]
    return ""


def stand_in_message(summary: str, request: str, max_tokens: int, notes: KeptNotes = NO_NOTES) -> UserMessage:
    """Return the message that replaces others. Excess is dropped: the summary's end, the request, then the notes."""
    kept, quoted = notes.render(), REQUEST + request if request else ""
    fitting = (each for each in (kept + quoted, kept) if estimate_tokens(MARKER + each) <= max_tokens)
    quoted = next(fitting, "")
    body = truncate_to_tokens(summary, max_tokens - estimate_tokens(SUMMARY + "\n") - estimate_tokens(quoted))
    return user((f"{SUMMARY}\n{body}" if body else MARKER) + quoted, origin="compaction")


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """Return the beginning of a text, up to this number of tokens."""
    if estimate_tokens(text) <= max_tokens:
        return text
    return text.encode("utf-8", "replace")[: max(0, max_tokens) * BYTES_PER_TOKEN].decode("utf-8", "ignore")
