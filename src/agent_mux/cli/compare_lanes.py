"""The lanes of a comparison at a terminal: one per active trial, drawn below the lines about what ended. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_mux._util.sanitize import one_line
from agent_mux.api.event_lines import money
from agent_mux.cli.layout import Symbols, cell_width, cut
from agent_mux.cli.live.cards import CardPainter
from agent_mux.cli.terminal import Palette
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.views import MessageCard, StatusCard, SubagentCard, ThinkingCard, Timeline, ToolCard

NARROW = 72  # columns below which a lane has no figures but the time
MAX_LAST_LINE = 300  # characters of the last line
KEYS = ("enter watch", "a approve", "d deny", "v view", "s steer", "x abort", "q stop")
ARROWS = {True: "↑↓", False: "j/k"}


@dataclass(slots=True)
class Lane:
    """An active trial: its run, what it used so far, and the request that waits for an answer."""

    trial: str
    run: RunHandle
    painter: CardPainter
    began: float
    """Seconds on the clock of the view."""
    timeline: Timeline = field(default_factory=lambda: Timeline(max_cards=50))
    _open_line: str = ""
    """What the agent wrote or printed since its last line break."""
    last_line: str = ""
    """The last line, which is not empty, of the agent's message or of the output of its tool."""

    def add_text(self, text: str) -> None:
        """Append text of the agent, which can begin and end within a line."""
        lines = (self._open_line + text).split("\n")
        self._open_line = lines[-1][:MAX_LAST_LINE]
        self.last_line = next((line[:MAX_LAST_LINE] for line in reversed(lines) if line.strip()), self.last_line)

    def end_line(self) -> None:
        """Begin a line: the next text is of another message or command."""
        self._open_line = ""

    @property
    def pending(self) -> PendingInteraction | None:
        """The oldest request that waits for an answer."""
        return next(iter(self.run.interaction.pending), None)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended and the checks are running."""
        return self.run.state in TERMINAL_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStyle:
    """Columns, colours and symbols with which lanes are drawn."""

    width: int
    palette: Palette
    symbols: Symbols
    is_unicode: bool = True


def draw_lanes(
    lanes: Sequence[Lane], selected: int, counts: tuple[int, int], elapsed: float, style: LaneStyle
) -> list[str]:
    """Return the lines of all lanes and of the summary below them.

    Args:
        lanes: The active trials.
        selected: Index of the selected lane.
        counts: Number of trials that have an outcome, and of all trials.
        elapsed: Seconds since the comparison began; lanes count from their own start on the same clock.
        style: Columns, colours and symbols.
    """
    names = max((cell_width(lane.trial) for lane in lanes), default=0)
    rows: list[str] = []
    for number, lane in enumerate(lanes):
        rows += _draw_lane(lane, min(names, style.width // 3), elapsed, style, is_selected=number == selected)
    done, planned = counts
    dot = style.symbols.dot
    summary = f"{done} of {planned} trials done {dot} {len(lanes)} working {dot} {clock(elapsed)}"
    below = [summary, *_rows_of((ARROWS[style.is_unicode], *KEYS), f" {dot} ", style.width)]
    return [*rows, *(style.palette.dim(cut(row, style.width)) for row in below)]


def _rows_of(parts: Sequence[str], separator: str, width: int) -> list[str]:
    """Join the parts to as few rows as possible; a part is never divided."""
    rows = [parts[0]]
    for part in parts[1:]:
        longer = f"{rows[-1]}{separator}{part}"
        rows[-1:] = [longer] if cell_width(longer) <= width else [rows[-1], part]
    return rows


def _draw_lane(lane: Lane, names: int, elapsed: float, style: LaneStyle, *, is_selected: bool) -> list[str]:
    status = lane.timeline.status
    mark = ">" if is_selected else " "
    name = cut(lane.trial, names).ljust(names)
    right = _figures(lane, status, elapsed, style)
    activity = _activity(lane, status)
    room = style.width - names - cell_width(right) - 5
    shown = cut(activity, max(room, 0)).ljust(max(room, 0))
    is_waiting = lane.pending is not None
    title = style.palette.warning(shown) if is_waiting else shown
    head = f"{mark} {style.palette.bold(name) if is_selected else name}  {title} {style.palette.dim(right)}"
    last_line = cut(one_line(lane.last_line, MAX_LAST_LINE), max(style.width - names - 4, 0))
    return [head, *([f"  {' ' * names}  {style.palette.dim(last_line)}"] if last_line else [])]


def _activity(lane: Lane, status: StatusCard | None) -> str:
    pending = lane.pending
    if pending is not None:
        verb = "asks: " if pending.type == "input" else "wants: "
        return verb + one_line(pending.description, 200)
    if lane.is_over:
        return "checks are running"
    if status is None or status.activity == "starting":
        return "starting"
    for card_id in reversed(status.running):
        text = _describe(lane, card_id)
        if text:
            return text
    return {"delayed": "waiting for the provider", "paused": "paused"}.get(status.activity, "waiting for the model")


def _describe(lane: Lane, card_id: str) -> str:
    match lane.timeline.get(card_id):
        case ToolCard() as card:
            return one_line(f"{card.tool_name} {lane.painter.subject(card)}", 200)
        case SubagentCard():
            return "sub-agent works"
        case ThinkingCard():
            return "thinking"
        case MessageCard():
            return "answering"
    return ""


def _figures(lane: Lane, status: StatusCard | None, elapsed: float, style: LaneStyle) -> str:
    parts = [clock(elapsed - lane.began)]
    if status is not None and style.width >= NARROW:
        tokens = status.input_tokens + status.output_tokens
        if money(status.cost):
            parts.insert(0, money(status.cost))
        if tokens:
            parts.insert(0, _thousands(tokens))
    return "  ".join(parts)


def _thousands(tokens: int) -> str:
    return f"{tokens} tok" if tokens < 10_000 else f"{tokens / 1000:.0f}k tok"


def clock(seconds: float) -> str:
    """Return a duration as `m:ss`, or `h:mm:ss`."""
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
