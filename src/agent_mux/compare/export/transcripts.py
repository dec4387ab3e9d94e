"""The transcript of an attempt, from its journal: its first and its last cards, with the number of those between."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.sanitize import one_line
from agent_mux.api.event_lines import event_line, short_input
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.views import (
    AnyCard,
    ApprovalCard,
    ErrorCard,
    MessageCard,
    NoticeCard,
    QuestionCard,
    SubagentCard,
    ThinkingCard,
    Timeline,
    ToolCard,
)

KEPT_CARDS = 150
"""Cards of the beginning, and of the end, that are shown."""
MAX_TEXT = 4000
"""Characters of a card that are shown."""
_WIDTH = 300
_OPEN_CARDS = 1000  # cards that a timeline keeps: closed ones are dropped first
EventReader = Callable[[Path], Iterable[BaseEvent]]
"""Derives the events of a journal: `lambda path: derive_events(path, codec_factory(adapters))`."""


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One card as text; not sanitized."""

    kind: str
    title: str
    text: str = ""
    state: str = ""
    offset_ms: int = 0
    """Time since the first event."""
    is_tool: bool = False


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """The shown entries of an attempt."""

    entries: tuple[TranscriptEntry, ...] = ()
    omitted: int = 0
    """Entries that are not shown."""
    omitted_after: int = 0
    """Number of shown entries before the omitted ones."""
    problem: str = ""
    """Why the journal could not be read to its end."""


def read_transcript(journal: Path, read: EventReader) -> Transcript:
    """Return the transcript of a journal, in bounded memory. What cannot be read is stated in `problem`."""
    timeline = Timeline(max_cards=_OPEN_CARDS)
    first: list[AnyCard] = []
    last: deque[AnyCard] = deque(maxlen=KEPT_CARDS)
    total, begin, problem = 0, None, ""
    try:
        for event in read(journal):
            begin = event.timestamp if begin is None else begin
            for card in timeline.feed(event):
                if card.version > 0 or type(card) not in _ENTRIES:
                    continue
                total += 1
                if len(first) < KEPT_CARDS:
                    first.append(card)
                else:
                    last.append(card)
    except (AgentMuxError, OSError, ValueError, msgspec.MsgspecError) as error:
        problem = one_line(str(error), _WIDTH)
    return Transcript(
        entries=tuple(_entries([*first, *last], begin or 0)),
        omitted=total - len(first) - len(last),
        omitted_after=len(first),
        problem=problem,
    )


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text with its beginning and its end, and the number of characters between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half:,} characters omitted ...\n{text[-half:]}"


def _entries(cards: Iterable[AnyCard], begin: int) -> Iterator[TranscriptEntry]:
    for card in cards:
        title, text, state = _ENTRIES[type(card)](card)
        if title or text:
            yield TranscriptEntry(
                kind=card.kind, title=title, text=cut(text), state=state, is_tool=isinstance(card, ToolCard),
                offset_ms=max(card.started_at - begin, 0),
            )  # fmt: skip


def _tool(card: ToolCard) -> tuple[str, str, str]:
    name = card.tool_name if card.server is None else f"{card.server}.{card.tool_name}"
    detail = card.command or ("" if card.input is None else short_input(card.input, _WIDTH))
    parts = [file.diff for file in card.files if file.diff] or [str(card.output)]
    parts += [text for text in (card.denial_reason, card.error) if text and text not in parts]
    return f"{name} {detail}".strip(), "\n".join(parts).strip(), card.state


def _notice(card: NoticeCard) -> tuple[str, str, str]:
    line = event_line(card.event)
    return ("", "", "") if line is None else (one_line(f"{line.text} {line.rest}", _WIDTH), "", "")


_ENTRIES: dict[type, Callable[[Any], tuple[str, str, str]]] = {
    MessageCard: lambda card: ("message", str(card.text), card.state if card.state == "abandoned" else ""),
    ThinkingCard: lambda card: ("thinking", str(card.text), ""),
    ToolCard: _tool,
    SubagentCard: lambda card: (f"sub-agent {card.agent_name}", card.summary or card.error or card.prompt, card.state),
    ApprovalCard: lambda card: (f"approval: {card.action} {card.detail}", card.reason or "", card.state),
    QuestionCard: lambda card: ("question", card.question, ""),
    ErrorCard: lambda card: (card.code, card.message, "failed"),
    NoticeCard: _notice,
}
"""Title, text and state of each kind of card; kinds that are not named are not part of a transcript."""
