"""Queries over stored sessions: costs by group, text search, and the comparison of two sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_mux.sdk import facts
from agent_mux.sdk.sessions import PromptSent, UnreadableSessionError
from agent_mux.sessions.conversation import Session, SessionMessage
from agent_mux.sessions.library import Order, SessionLibrary, StoredSession
from agent_mux.sessions.spending import PricedCall, UsageTotals
from agent_mux.sessions.summary import ALL, SessionFilter, SessionSummary

# -- costs

GroupBy = Literal["agent", "model", "day", "tag"]
UNKNOWN = "unknown"
UNTAGGED = "(no tag)"


class CostReport(dict[str, UsageTotals]):
    """Totals by group, and over all groups."""

    def __init__(self, groups: Mapping[str, UsageTotals], total: UsageTotals) -> None:
        super().__init__(groups)
        self.total = total
        """The totals of all groups. Each call counts once, also if its session has two tags and is in two groups."""


def cost_report(library: SessionLibrary, wanted: SessionFilter = ALL, *, group_by: GroupBy = "agent") -> CostReport:
    """Return the totals by group: days in order, other groups by falling cost.

    Times and models are those of the calls, so a session over two days counts on each day with the calls of that day.
    Each model call counts once, however many copies of it are stored. Raises the errors of `SessionLibrary.list`.
    """
    # All sessions are read, because a call may have been copied from or to a session that the filter excludes. A call
    # belongs to the session that had it first: a copy begins when its origin did, and was updated later.
    sessions = sorted(
        library.known(replace(wanted, since=None, until=None, model=None, cwd=None, tags=())),
        key=lambda known: (known.summary.created_at or 0, known.summary.updated_at),
    )
    groups: dict[str, UsageTotals] = {}
    total = UsageTotals()
    counted: set[tuple[str, str]] = set()
    for known in sessions:
        agent, summary = known.adapter.agent, known.summary
        is_wanted = replace(wanted, since=None, until=None, model=None).matches(summary)
        for call in known.calls:
            if call.key and (agent, call.key) in counted:
                continue
            counted.add((agent, call.key))
            at = call.at or summary.updated_at
            if is_wanted and wanted.has_time(at) and wanted.model in {None, call.model}:
                total.add(call)
                for group in _groups_of(group_by, summary, call, at):
                    groups.setdefault(group, UsageTotals()).add(call)
    by_name = sorted(groups.items())
    by_cost = sorted(by_name, key=lambda item: (-item[1].usd, -item[1].calls))
    return CostReport(dict(by_name if group_by == "day" else by_cost), total)


def _groups_of(group_by: GroupBy, summary: SessionSummary, call: PricedCall, at: int) -> tuple[str, ...]:
    match group_by:
        case "agent":
            return (summary.agent,)
        case "model":
            return (call.model or UNKNOWN,)
        case "day":
            return (datetime.fromtimestamp(at / 1000).astimezone().date().isoformat(),)
        case "tag":
            return summary.tags or (UNTAGGED,)


# -- search

EXCERPT_MARGIN = 60  # characters of an excerpt on either side of the match
SearchOrder = Literal["relevance", "date", "cost"]


class Hit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A session that contains the searched text."""

    session: SessionSummary
    """The session that contains the text."""
    count: Annotated[int, Meta(description="Number of occurrences.")]
    excerpt: Annotated[str, Meta(description="The first occurrence with the text around it.")]


def search(  # noqa: PLR0913  # all but two have a default
    library: SessionLibrary,
    text: str,
    wanted: SessionFilter = ALL,
    *,
    sort: SearchOrder = "relevance",
    order: Order = "desc",
    limit: int | None = 50,
    mask: Callable[[str], str] | None = None,
) -> list[Hit]:
    """Return the sessions that contain a text in a prompt, an answer, thinking, or a tool's input or output.

    The search ignores case. The order by relevance is by number of occurrences; `order` is that of
    `SessionLibrary.list`. `mask` hides secrets before texts are searched, so that a search cannot find one. Raises the
    errors of `SessionLibrary.list`.
    """
    needle = text.casefold()
    results = (_search_session(library, known, needle, mask) for known in library.known(wanted))
    hits = sorted(
        (hit for hit in results if hit is not None),
        key=lambda hit: (-_rank(hit, sort), -hit.session.updated_at, hit.session.id),
        reverse=order == "asc",
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


def _search_session(
    library: SessionLibrary, known: StoredSession, needle: str, mask: Callable[[str], str] | None
) -> Hit | None:
    count, excerpt = 0, ""
    texts = _texts_of(library, known)
    try:
        for text in texts if mask is None else map(mask, texts):
            found = text.casefold().count(needle)
            if found and not count:
                excerpt = _excerpt(text, needle)
            count += found
    except (OSError, UnreadableSessionError):
        return None  # removed or damaged since it was listed
    return Hit(session=known.summary, count=count, excerpt=excerpt) if count else None


def _texts_of(library: SessionLibrary, known: StoredSession) -> Iterator[str]:
    for entry in library.open(known).read():
        match entry.fact:
            case PromptSent(text) | facts.WholeText(text) | facts.WholeThinking(text):
                yield text
            case facts.ToolReady(input=value) | facts.McpBegin(input=value):
                yield _as_text(value)
            case facts.ToolDone(output=value, error=error) | facts.McpDone(output=value, error=error):
                yield error if error is not None else _as_text(value)
            case facts.SubagentBegin(prompt=text) | facts.SubagentDone(summary=text):
                yield text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _excerpt(text: str, needle: str) -> str:
    at = text.casefold().find(needle)
    begin, end = max(at - EXCERPT_MARGIN, 0), at + len(needle) + EXCERPT_MARGIN
    cut = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{cut}{'…' if end < len(text) else ''}"


# -- comparison


class Difference(msgspec.Struct, frozen=True, rename="camel", tag_field="op", tag="change"):
    """One place where two sessions differ."""

    at: int
    """Zero-based index of the message in the first session."""
    removed: list[SessionMessage]
    """Messages that only the first session contains."""
    added: list[SessionMessage]
    """Messages that only the second session contains."""


class SessionDiff(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The comparison of two sessions."""

    first: SessionSummary
    """The session on the left."""
    second: SessionSummary
    """The session on the right."""
    common: int
    """Number of messages at the beginning that both sessions share."""
    changes: list[Difference]
    """The differences, in the order of the messages."""

    @property
    def is_same(self) -> bool:
        """Whether the messages of both sessions are the same."""
        return not self.changes


def diff(first: Session, second: Session) -> SessionDiff:
    """Compare the messages and tool calls of two sessions; times, models and call ids are ignored."""
    left, right = _keys(first.messages), _keys(second.messages)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    matcher = SequenceMatcher(None, left[common:], right[common:], autojunk=False)
    changes = [
        Difference(common + a, first.messages[common + a : common + b], second.messages[common + c : common + d])
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]
    return SessionDiff(first=first.summary, second=second.summary, common=common, changes=changes)


def _keys(messages: Sequence[SessionMessage]) -> list[bytes]:
    return [msgspec.json.encode(_key(message)) for message in messages]


def _key(message: SessionMessage) -> tuple[Literal["user", "assistant"], str, list[Any]]:
    return message.role, message.text, [(tool.name, tool.input, tool.output, tool.error) for tool in message.tools]
