"""How a summary of old messages is asked for: by the engine, and by the middleware that does the same."""
# DOC: """The pieces that compaction is made of, pure: shorter outputs, digests, and the messages that stand for others.
#
#      Source: phi-core, `compact_messages`.
#      """

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agent_loop.context.estimation import BYTES_PER_TOKEN, estimate_tokens
from agent_loop.messages import AssistantMessage, Image, Message, Shown, Text, ToolMessage, UserMessage, user

MAX_WORDS = 2_000
SUMMARY_REQUEST = (
    f"Summarize this conversation in at most {MAX_WORDS:,} words, for the agent, which goes on with the work and sees "
    "nothing else of what was before. Tell what the user wants, in their words where the words matter; what was "
    "decided and why; which files were read, made or changed, and how; what commands and tests showed; what failed; "
    "and what is still to be done. No preface."
)


LINE_CHARACTERS = 200
"""What a line of tool output may have on average: a limit of lines alone is none for output of one endless line."""
DIGEST_CHARACTERS = 160
"""Of what is told of one turn in a digest."""
REQUEST_CHARACTERS = 2_000
"""Of the latest request, where it is left out with what surrounds it."""

SUMMARY = (
    "[Earlier messages were replaced by this summary, so that the conversation fits the context window. "
    "It tells what was said and done; it is no new request.]"
)
MARKER = "[Earlier messages were left out here, so that the conversation fits the context window.]"
REQUEST = "\n\n[The latest request of the user was:]\n"


def shorten(message: Message, max_lines: int, max_characters: int | None = None) -> Message:
    """A tool result of at most so many lines, of its beginning and its end; any other message as it is."""
    if not isinstance(message, ToolMessage):
        return message
    most = max_lines * LINE_CHARACTERS if max_characters is None else max_characters
    content = tuple(_shortened(block, max_lines, most) for block in message.content)
    return message if content == message.content else msgspec.structs.replace(message, content=content)


def without_images(message: Message) -> Message:
    """A tool result with a word in the place of each picture; any other message as it is."""
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
    """One line for each turn, without any tool output; the oldest lines go first where all would be too many."""
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
    """Of a message that stands for others: the summary, and the latest request; each may be empty."""
    body, _, request = message.text.partition(REQUEST)
    return body.partition("\n")[2], request


def latest_request(middle: Sequence[Message], recent: Sequence[Message]) -> str:
    """What the user asked for last, where that is in the middle, or was before; else empty."""
    if any(_is_request(each) for each in recent):
        return ""
    for message in reversed(middle):
        if isinstance(message, UserMessage):
            request = parse_stand_in(message)[1] if message.origin == "compaction" else message.text
            if request and (message.origin == "compaction" or _is_request(message)):
                return request[:REQUEST_CHARACTERS]
    return ""


def _is_request(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.origin in {"user", "steering", "follow_up"}


def stand_in_message(summary: str, request: str, max_tokens: int) -> UserMessage:
    """The message in the place of others. What does not fit is left out: the end of the summary, then the request."""
    quoted = REQUEST + request if request else ""
    if estimate_tokens(MARKER) + estimate_tokens(quoted) > max_tokens:
        quoted = ""
    body = truncate_to_tokens(summary, max_tokens - estimate_tokens(SUMMARY + "\n") - estimate_tokens(quoted))
    return user((f"{SUMMARY}\n{body}" if body else MARKER) + quoted, origin="compaction")


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """The beginning of a text, as much as takes so many tokens."""
    if estimate_tokens(text) <= max_tokens:
        return text
    return text.encode("utf-8", "replace")[: max(0, max_tokens) * BYTES_PER_TOKEN].decode("utf-8", "ignore")
