"""Finding sessions by what was said and done in them."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.sessions import Prompted, UnreadableError
from agent_mux.sessions.filter import ALL, SessionFilter
from agent_mux.sessions.library import Known, SessionLibrary
from agent_mux.sessions.summary import SessionSummary

AROUND = 60  # characters of an excerpt on either side of what was found
SearchOrder = Literal["relevance", "date", "cost"]


class Hit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A session in which it was found."""

    session: SessionSummary
    count: int
    """How often."""
    excerpt: str
    """Where it was found first, with a few words around it."""


def search(
    library: SessionLibrary,
    text: str,
    wanted: SessionFilter = ALL,
    *,
    sort: SearchOrder = "relevance",
    limit: int | None = 50,
) -> list[Hit]:
    """The sessions in which a text occurs: in a prompt, an answer, a thought, or what a tool was given or answered.

    Upper and lower case are the same. By relevance, sessions come first in which it occurs most often. Raises as
    `SessionLibrary.list` does.
    """
    needle = text.casefold()
    looks = (_look_into(library, known, needle) for known in library.known(wanted))
    hits = sorted(
        (hit for hit in looks if hit is not None),
        key=lambda hit: (-_rank(hit, sort), -hit.session.updated_at, hit.session.id),
    )
    return hits[:limit]


def _rank(hit: Hit, sort: SearchOrder) -> float:
    match sort:
        case "relevance":
            return hit.count
        case "date":
            return hit.session.updated_at
        case "cost":
            return hit.session.cost.total_usd


def _look_into(library: SessionLibrary, known: Known, needle: str) -> Hit | None:
    count, excerpt = 0, ""
    try:
        for said in _said(library, known):
            found = said.casefold().count(needle)
            if found and not count:
                excerpt = _around(said, needle)
            count += found
    except (OSError, UnreadableError):
        return None  # it was there a moment ago
    return Hit(session=known.made.summary, count=count, excerpt=excerpt) if count else None


def _said(library: SessionLibrary, known: Known) -> Iterator[str]:
    for entry in library.open(known).read():
        match entry.fact:
            case Prompted(text) | facts.Text(text) | facts.Thinking(text):
                yield text
            case facts.ToolReady(input=value) | facts.McpBegin(input=value):
                yield _words(value)
            case facts.ToolDone(output=value, error=error) | facts.McpDone(output=value, error=error):
                yield error if error is not None else _words(value)
            case facts.SubagentBegin(prompt=text) | facts.SubagentDone(summary=text):
                yield text


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _around(said: str, needle: str) -> str:
    at = said.casefold().find(needle)
    begin, end = max(at - AROUND, 0), at + len(needle) + AROUND
    cut = " ".join(said[begin:end].split())
    return f"{'…' if begin else ''}{cut}{'…' if end < len(said) else ''}"
