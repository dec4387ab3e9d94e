"""Prompts for approvals and questions on a terminal, and the parsing of typed answers.

An approval shows what a person decides about: the command, the input of the tool, or the diff. Everything that an agent
reports is hostile, so invisible characters are shown as their code points, and a long line is wrapped, not cut: its end
may be what matters.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agent_mux._util.sanitize import reveal
from agent_mux.cli.terminal import Palette, TerminalSize, one_line, sanitize
from agent_mux.sdk.interactions import (
    ApprovalDetail,
    Approve,
    Choice,
    Deny,
    InputDetail,
    PendingInteraction,
    Text,
)

INTERACTION_EVENTS = frozenset({"approval_request", "input_required"})
"""The types of the events that request an answer."""
DECLINED = Deny("declined at the terminal")
_QUESTION = "question: "
_INDENT = "    "
_TAB = 4
_SHORTEST_LINE = 20
_LONGEST_NAME = 100
_OTHER_LINES = 4  # of a screen: the first line of the request, the mark of a folded text, the prompt, one before all
_LEAST_SHOWN = 3  # lines of the text on a very low screen
_WHOLE_WORDS = frozenset({"v", "view"})


class ShownRequest(NamedTuple):
    """The text of a request, whole lines, and whether a part of it is left out."""

    text: str
    is_folded: bool


def describe_request(
    pending: PendingInteraction, palette: Palette, size: TerminalSize, *, whole: bool = False
) -> ShownRequest:
    """Describe a request for a terminal of this size.

    An approval that is longer than the screen is folded, unless `whole` is true.
    """
    match pending.detail:
        case ApprovalDetail() as detail:
            risk = palette.warning(f"permission needed ({detail.risk_level} risk): ")
            head = risk + one_line(detail.action, 500) + "\n"
            height = None if whole else max(size.rows - _OTHER_LINES, _LEAST_SHOWN)
            return _fold(head, _lines_of(detail), palette, size.columns, height)
        case InputDetail() as detail:
            return ShownRequest(_describe_question(detail, palette, size.columns), False)


def prompt_for(pending: PendingInteraction, *, is_folded: bool = False) -> str:
    """Return the prompt in front of the answer."""
    if isinstance(pending.detail, InputDetail):
        return "number or text> " if pending.detail.options else "> "
    return "[y]es / [n]o / [a]lways / [v]iew all? " if is_folded else "[y]es / [n]o / [a]lways? "


def asks_for_whole(pending: PendingInteraction, line: str) -> bool:
    """Return whether a typed line asks to show the whole request."""
    return pending.type == "approval" and line.strip().lower() in _WHOLE_WORDS


def parse_answer(pending: PendingInteraction, line: str) -> Approve | Deny | Text | Choice | None:
    """Parse a typed answer; None if it is not a valid one."""
    line = line.strip()
    match pending.detail:
        case ApprovalDetail():
            return _parse_approval(line)
        case InputDetail() as detail:
            return _parse_input(line, len(detail.options))


def _parse_approval(answer: str) -> Approve | Deny | None:
    word, _, reason = answer.partition(" ")
    match word.lower():
        case "y" | "yes":
            return Approve()
        case "a" | "always":
            return Approve(always=True)
        case "n" | "no":
            return Deny(reason.strip() or None)
    return None


def _parse_input(answer: str, options: int) -> Choice | Text | None:
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= options:
        return Choice(int(answer) - 1)
    return Text(answer) if answer else None


# -- the text of a question


def _describe_question(detail: InputDetail, palette: Palette, columns: int) -> str:
    """Return the question, its context, and the numbered options with their descriptions, which the context has."""
    width = max(columns - 1, _SHORTEST_LINE)
    context = [line for line in sanitize(detail.context or "").split("\n") if line]
    first, *more = sanitize(detail.question).split("\n")
    head, *rows = _hanging(_QUESTION, first, width)
    rows = [palette.warning(_QUESTION) + head.removeprefix(_QUESTION), *rows]
    options: list[str] = []
    for number, option in enumerate(detail.options, start=1):
        label = one_line(option, 500)
        lead = f"  {number}. "
        described = next((line for line in context if line.startswith(f"{label}: ")), None)
        options += _hanging(lead, label, width)
        if described is not None:
            context.remove(described)
            text = described.removeprefix(f"{label}: ")
            options += [palette.dim(row) for row in _hanging(" " * len(lead), text, width)]
    shown = [row for line in (*more, *context) for row in _hanging(_INDENT, line, width)]
    return "".join(f"{row}\n" for row in (*rows, *shown, *options))


def _hanging(lead: str, text: str, width: int) -> list[str]:
    """Break a line between words, with all rows but the first indented as far as the text of the first."""
    from agent_mux.cli.layout import break_lines  # not needed when the command starts

    rows = break_lines(text, max(width - len(lead), _SHORTEST_LINE))
    return [(lead if position == 0 else " " * len(lead)) + row for position, row in enumerate(rows)]


# -- the text of an approval


class _Line(NamedTuple):
    text: str
    is_diff: bool = False


def _lines_of(detail: ApprovalDetail) -> Iterator[_Line]:
    """Yield what a person needs to decide: the diff, or the command, the detail and the input of the tool."""
    if detail.diff:
        shown = [detail.detail] if detail.detail and "\n" not in detail.detail else []
        yield from (_Line(line) for line in shown)
        yield from (_Line(line, is_diff=True) for line in _split(detail.diff))
        return
    texts = list(dict.fromkeys(text for text in (detail.command, detail.detail) if text))
    if _is_json(detail.detail) and isinstance(detail.tool_input, Mapping):
        texts = []  # the input follows in a form for people
    for text in texts:
        yield from (_Line(line) for line in _split(text))
    for name, value in (detail.tool_input if isinstance(detail.tool_input, Mapping) else {}).items():
        if not _is_shown(value, texts):
            yield from (_Line(line) for line in _field_lines(one_line(reveal(str(name)), _LONGEST_NAME), value))


def _is_shown(value: Any, texts: list[str]) -> bool:
    """Return whether the value is empty or part of these texts."""
    if value is None or value in ("", [], {}):
        return True
    return isinstance(value, str) and any(value in text for text in texts)


def _field_lines(name: str, value: Any) -> Iterator[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    first, *rest = _split(text) or [""]
    if not rest:
        yield f"{name}: {first}"
        return
    yield f"{name}:"
    yield from (f"  {line}" for line in (first, *rest))


def _is_json(text: str) -> bool:
    return text.startswith("{") and text.endswith("}")


def _split(text: str) -> list[str]:
    return reveal(text).removesuffix("\n").split("\n")


# -- fitting it to the screen


def _fold(head: str, lines: Iterator[_Line], palette: Palette, columns: int, height: int | None) -> ShownRequest:
    """Return as many rows as fit into `height`, all if it is None, and how many lines are left out."""
    width = max(columns - len(_INDENT) - 1, _SHORTEST_LINE)
    rows: list[str] = []
    for line in lines:
        rows += (_paint(part, line, palette) for part in _wrap(line, width))
        if height is not None and len(rows) > height:
            left_out = len(rows) - height + sum(1 for _ in lines)
            mark = palette.dim(f"... {left_out} more line{'s' if left_out > 1 else ''}; v shows all")
            rows = [*rows[:height], mark]
            break
    else:
        left_out = 0
    return ShownRequest(head + "".join(f"{_INDENT}{row}\n" for row in rows), left_out > 0)


def _paint(part: str, line: _Line, palette: Palette) -> str:
    if not line.is_diff:
        return part
    if line.text.startswith(("--- ", "+++ ")):
        return palette.bold(part)
    paint = {"+": palette.good, "-": palette.bad, "@": palette.accent, "\\": palette.dim}.get(line.text[:1])
    return part if paint is None else paint(part)


def _wrap(line: _Line, width: int) -> Iterator[str]:
    """Yield parts of a line that fit into `width` columns. No line of a diff begins as its second part does."""
    text = line.text.expandtabs(_TAB)
    if len(text) <= width and text.isascii():
        yield text
        return
    lead = "| " if line.is_diff else "  "
    from rich.cells import get_character_cell_size  # takes 40 ms; few lines need it

    start, used = 0, 0
    for position, character in enumerate(text):
        size = get_character_cell_size(character)
        if used + size > width:
            yield (lead if start else "") + text[start:position]
            start, used = position, len(lead)
        used += size
    yield (lead if start else "") + text[start:]
