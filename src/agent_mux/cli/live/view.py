"""`LiveView`: cards that ended go to the scrollback, what is open is in the footer."""

import time
from collections.abc import Callable, Iterable

from agent_mux.api.event_lines import EventLine, event_line, money, reason_of_denial
from agent_mux.cli.layout import break_lines, cell_width, cut, fold_lines, symbols_for, wrap
from agent_mux.cli.live.cards import CardPainter
from agent_mux.cli.live.footer import Footer
from agent_mux.cli.live.markdown import BlockSplitter, render_markdown
from agent_mux.cli.output import Chunk, OutputBuffer, Screen
from agent_mux.cli.rendering import MARKS, paint_mark
from agent_mux.cli.terminal import one_line, sanitize
from agent_mux.cli.views import View, summary_lines
from agent_mux.events import BaseEvent, DebugEvent, QuotaWindow, TextDeltaEvent
from agent_mux.run.result import RunResult
from agent_mux.sdk.interactions import approval_subject
from agent_mux.views import (
    ApprovalCard,
    Card,
    ErrorCard,
    MessageCard,
    NoticeCard,
    QuestionCard,
    StatusCard,
    SubagentCard,
    ThinkingCard,
    Timeline,
    ToolCard,
)

TAIL_ROWS = 6  # of a message that is not complete, and of the output of a running command
MAX_ACTIVITIES = 4
INSIDE_ROWS = 6  # of a message of a sub-agent
LOG_WIDTH = 4000
_NARROWEST = 24
_COMPACT_ROWS = 1  # below the title of a tool call that needs no blank line before the next one
MAX_COMMITTED = 200
FILE_EVENTS = frozenset({"file_read", "file_write", "file_create", "file_delete", "file_patch"})
_IDLE_TEXTS = {
    "starting": "starting", "working": "waiting for the model", "waiting": "waiting for you",
    "delayed": "waiting for the provider", "paused": "paused", "idle": "waiting for a prompt", "ended": "ending",
}  # fmt: skip


class LiveView(View):
    """Shows one run at a terminal."""

    has_footer = True

    def __init__(self, screen: Screen, *, root: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Initialize the view. Paths inside of `root` are shown relative to it; `clock` counts seconds."""
        self._screen = screen
        self._buffer = OutputBuffer(screen)
        self._clock = clock
        self._began = clock()
        self._first_seen: dict[str, float] = {}
        """When open cards were first seen, by id."""
        self._symbols = symbols_for(screen.encoding)
        self._painter = CardPainter(screen.palette, self._symbols, root)
        self._timeline = Timeline(max_cards=200)
        self._splitter = BlockSplitter()
        self._titled: str | None = None
        """Id of the card whose title is the last thing in the scrollback."""
        self._wrote_block = False
        """Whether the current message has a block in the scrollback."""
        self._held: list[ToolCard] = []
        """Calls that ended with the last events."""
        self._asked_diffs: dict[str, str] = {}
        """Diffs that prompts showed, by the id of the call that waited."""
        self._committed: list[str] = []
        """Ids of calls in the scrollback."""
        self._last = ""
        """What the scrollback ends with: nothing, a `line`, a `compact` card or a `card`."""

    # -- the interface of views

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Return what the event adds to the scrollback."""
        if event.type not in FILE_EVENTS:
            self._release_calls()
        for card in self._timeline.feed(event):
            if card.is_open:
                self._first_seen.setdefault(card.id, self._clock())
            else:
                self._first_seen.pop(card.id, None)
            self._show_card(card, event)
        return self._buffer.take()

    def held_back(self) -> list[Chunk]:
        """Return what waited for events that belong to it, when no event has arrived for a moment."""
        self._release_calls()
        return self._buffer.take()

    def end(self, result: RunResult) -> list[Chunk]:
        """Return the unfinished lines and the summary of the run."""
        return self.finish(summary_lines(result))

    def end_without_result(self) -> list[Chunk]:
        """Return the unfinished lines, without a summary: the run has no result."""
        return self.finish(())

    def finish(self, lines: Iterable[EventLine]) -> list[Chunk]:
        """Return the unfinished lines, then `lines`."""
        self._release_calls()
        self._end_message()
        rows = [row for line in lines for row in self._format_line(line)]
        if rows and self._last:
            self._buffer.line("")
        for row in rows:
            self._buffer.line(row)
        return self._buffer.take()

    def set_width(self, width: int) -> None:
        """Set the number of columns for lines that follow."""
        self._screen = self._screen._replace(width=width)

    def footer(self, agent: str, model: str | None, *, is_busy: bool = True) -> list[str]:
        """Return the lines about what is open and what the run has used. Between turns, nothing is open."""
        status = self._timeline.status
        if status is not None and status.activity == "ended":
            return []
        width = self._width - 1  # a full line would wrap on some terminals
        return [
            *self._message_tail(width),
            *(self._activities(status, agent, width) if is_busy else []),
            self._figures(status, model, width),
        ]

    def new_footer(self) -> Footer:
        """Return the area for the footer."""
        return Footer()

    # -- cards to the scrollback

    @property
    def _width(self) -> int:
        return max(self._screen.width, _NARROWEST)

    def _show_card(self, card: Card, event: BaseEvent) -> None:
        if card.subagent_id is not None and not isinstance(card, SubagentCard):
            self._show_inside(card)
            return
        match card:
            case MessageCard():
                self._show_message(card, event)
            case ThinkingCard() if not card.is_open:
                self._card(self._painter.thinking(card, self._width), [])
            case ToolCard():
                self._show_call(card, event)
            case SubagentCard():
                self._show_subagent(card)
            case ApprovalCard():
                self._show_approval(card)
            case QuestionCard() if card.version == 0:
                self._show_question(event)
            case NoticeCard():
                self._show_notice(card.event)
            case ErrorCard():
                self._lines(event_line(event))

    def _show_message(self, card: MessageCard, event: BaseEvent) -> None:
        if isinstance(event, TextDeltaEvent):
            self._blocks(self._splitter.feed(sanitize(event.delta)))
        elif not card.is_open:
            if not self._splitter.rest and not self._wrote_block:
                self._blocks(self._splitter.feed(sanitize(str(card.text))))
            self._end_message()
            if card.state == "abandoned":
                self._lines(EventLine("warning", "the model call broke off; its text is not part of the result"))

    def _end_message(self) -> None:
        self._blocks(self._splitter.finish())
        self._wrote_block = False

    def _blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            rows = render_markdown(block, self._width, styled=self._screen.palette.enabled)
            if not rows:
                continue
            self._buffer.styled_out(("\n" if self._last else "") + "\n".join(rows) + "\n")
            self._last, self._titled, self._wrote_block = "card", None, True

    # -- tool calls

    def _show_call(self, card: ToolCard, event: BaseEvent) -> None:
        """Hold a call that ended until the next event: the files that it changed follow it."""
        if card.is_open:
            return
        if card.id in self._committed:
            if event.type in FILE_EVENTS:
                self._late_file(card)
        elif card not in self._held:
            self._held.append(card)

    def _release_calls(self) -> None:
        held, self._held = self._held, []
        for card in held:
            self._committed = [*self._committed, card.id][-MAX_COMMITTED:]
            body = self._painter.body(card, self._width, self._asked_diffs.pop(card.id, None))
            self._card(self._painter.title(card, self._width), body, card.id)

    def _late_file(self, card: ToolCard) -> None:
        rows = self._painter.file_rows(card, card.files[-1], self._width)
        if rows:
            self._card(self._painter.title(card, self._width), rows)

    def _card(self, title: list[str], body: list[str], card_id: str | None = None) -> None:
        """Add a card to the scrollback; without its title, if that is what the scrollback ends with."""
        if not title:
            return
        is_below_prompt = card_id is not None and self._titled == card_id
        is_compact = len(title) == 1 and len(body) <= _COMPACT_ROWS and not is_below_prompt
        rows = body
        if not is_below_prompt:
            self._gap(is_compact=is_compact)
            rows = [*title, *body]
        for row in rows:
            self._buffer.line(row)
        self._last, self._titled = ("compact" if is_compact else "card"), None

    def _gap(self, *, is_compact: bool = False) -> None:
        if self._last and not (is_compact and self._last == "compact"):
            self._buffer.line("")

    def _show_approval(self, card: ApprovalCard) -> None:
        """Show the title of the call that waits, above the prompt. A decision is shown with its call."""
        call = self._call_of(card)
        if card.is_open:
            if not self._screen.asks:
                return
            self._release_calls()
            if call is None:
                self._gap()
            elif self._titled != call.id:
                self._gap()
                for row in self._painter.title(call, self._width):
                    self._buffer.line(row)
                self._titled = call.id
            if call is not None and card.diff:
                self._asked_diffs[call.id] = card.diff
            self._last = "card"
        elif card.state == "denied" and call is None:
            about = one_line(card.command or approval_subject(card.detail) or card.action, LOG_WIDTH)
            self._lines(EventLine("bad", f"denied: {about}", reason_of_denial(card.reason)))

    def _show_question(self, event: BaseEvent) -> None:
        """Separate a question from what is above it; a prompt shows it where there is one."""
        if not self._screen.asks:
            self._lines(event_line(event))
            return
        self._release_calls()
        self._gap()
        self._last, self._titled = "card", None

    def _call_of(self, card: ApprovalCard) -> ToolCard | None:
        if card.tool_call_id is None:
            return None
        calls = (one for one in self._timeline if isinstance(one, ToolCard) and one.tool_call_id == card.tool_call_id)
        return next(calls, None)

    # -- sub-agents

    def _show_subagent(self, card: SubagentCard) -> None:
        title = self._painter.subagent_title(card, self._width)
        if card.version == 0:
            self._card(title, [])
            self._titled = card.id
        elif not card.is_open:
            self._card(title, self._painter.subagent_body(card, self._width), card.id)

    def _show_inside(self, card: Card) -> None:
        """Show what happens inside a sub-agent: whole messages and the titles of calls, indented."""
        width = self._width - 4
        match card:
            case MessageCard() if not card.is_open:
                rows = [row for line in sanitize(str(card.text)).strip().split("\n") for row in wrap(line, width)]
                for row in fold_lines(rows, INSIDE_ROWS, 0).rows(self._symbols.more):
                    self._buffer.line("    " + self._screen.palette.dim(row))
            case ToolCard() if not card.is_open and card.id not in self._committed:
                self._committed = [*self._committed, card.id][-MAX_COMMITTED:]
                rows = self._painter.title(card, width)
                if card.state in {"failed", "denied"}:
                    rows += self._painter.body(card, width)
                for row in rows:
                    self._buffer.line("    " + row)
            case _:
                return
        self._last, self._titled = "card", None

    # -- lines

    def _show_notice(self, event: BaseEvent) -> None:
        if isinstance(event, DebugEvent) and event.level != "warn" and not self._screen.verbose:
            return
        self._lines(event_line(event))

    def _lines(self, line: EventLine | None) -> None:
        if line is None:
            return
        if self._last not in {"", "line"}:
            self._buffer.line("")
        for row in self._format_line(line):
            self._buffer.line(row)
        self._last, self._titled = "line", None

    def _format_line(self, line: EventLine) -> list[str]:
        """Return a line, wrapped between words. A line with a path is one row, so that it can be copied."""
        palette = self._screen.palette
        mark = MARKS[line.mark]
        lead = paint_mark(palette, line.mark, mark) + " " if mark else ""
        text, rest = one_line(line.text, LOG_WIDTH), one_line(line.rest, LOG_WIDTH)
        if line.whole and mark == "":
            return [lead + " ".join(part for part in (text, palette.dim(rest)) if part)]
        indent = len(mark) + 1 if mark else 0
        rows: list[str] = []
        for number, row in enumerate(wrap(f"{text}\0{rest}" if text and rest else text or rest, self._width - indent)):
            rows.append((lead if number == 0 else " " * indent) + row)
        return self._dim_after(rows, "\0") if text and rest else [row if text else palette.dim(row) for row in rows]

    def _dim_after(self, rows: list[str], mark: str) -> list[str]:
        """Dim what follows the mark, which becomes a space."""
        result, is_dim = [], False
        for row in rows:
            before, found, after = row.partition(mark)
            if is_dim:
                result.append(self._screen.palette.dim(row))
            else:
                result.append(before + (" " + self._screen.palette.dim(after) if found and after else ""))
            is_dim = is_dim or bool(found)
        return result

    # -- the footer

    def _message_tail(self, width: int) -> list[str]:
        rest = self._splitter.rest.strip("\n")
        if not rest:
            return []
        rows = [row for line in rest[-4000:].split("\n") for row in break_lines(line, width)]
        return ["", *rows[-TAIL_ROWS:]]

    def _activities(self, status: StatusCard | None, agent: str, width: int) -> list[str]:
        palette, now = self._screen.palette, self._clock()
        spinner = self._symbols.spinner[int(now * 8) % len(self._symbols.spinner)]
        cards = [card for card in map(self._timeline.get, status.running if status is not None else []) if card]
        rows = [""]
        for card in cards[:MAX_ACTIVITIES]:
            elapsed = _clock_text(now - self._first_seen.get(card.id, now))
            text = self._painter.activity(card, width - len(elapsed) - 4)
            rows.append(f"{palette.accent(spinner)} {text} {palette.dim(elapsed)}")
            if isinstance(card, ToolCard) and len(cards) == 1:
                rows += self._painter.last_output(card, width, TAIL_ROWS)
        if len(cards) > MAX_ACTIVITIES:
            rows.append(palette.dim(f"  {self._symbols.more} {len(cards) - MAX_ACTIVITIES} more"))
        if not cards:
            name = status.activity if status is not None else "starting"
            text = f"starting {agent}" if name == "starting" else _IDLE_TEXTS[name]
            rows.append(f"{palette.accent(spinner)} {cut(text, width - 2)}")
        return rows

    def _figures(self, status: StatusCard | None, model: str | None, width: int) -> str:
        """Return elapsed time, cost, tokens, model and quota, as many as fit, in this order."""
        figures = [_clock_text(self._clock() - self._began)]
        if status is not None:
            model = status.model or model
            figures.append(money(status.cost))
            if status.input_tokens or status.output_tokens:
                figures.append(f"{_short(status.input_tokens)} in {_short(status.output_tokens)} out")
        figures.append(one_line(model or "", 40))
        if status is not None:
            figures += [_quota_text(window) for window in status.quota]
            if status.context_used is not None:
                figures.append(f"context {status.context_used:.0f} %")
        dot = f" {self._symbols.dot} "
        line = "  "
        for figure in filter(None, figures):
            longer = line + (dot if line.strip() else "") + figure
            if cell_width(longer) <= width:
                line = longer
        return self._screen.palette.dim(line)


def _clock_text(seconds: float) -> str:
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60}:{whole % 60:02}" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    )


def _short(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _quota_text(window: QuotaWindow) -> str:
    if window.used_fraction is None:
        return ""
    return f"{one_line(window.window, 20).replace('_', ' ')} quota {window.used_fraction * 100:.0f} %"
