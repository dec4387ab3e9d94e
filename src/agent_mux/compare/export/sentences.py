"""What differs between candidates, and which trial is selected, in sentences."""

from collections.abc import Iterator, Sequence

from agent_evaluation.strategies.trials import Selection
from agent_mux._util.listing import list_names
from agent_mux._util.sanitize import one_line
from agent_mux.api.comparisons import ChangedPath, DifferencesView, SharedChange, ToolSequence
from agent_mux.api.event_lines import count
from agent_mux.compare.export import cells

_NAME = 40  # characters of a tool's name
_SELECTION = 400  # characters of the sentence about the selected trial
_PATHS = 8
"""Paths and changes that are listed; the others are counted."""


def difference_lines(differences: DifferencesView) -> Iterator[str]:
    """Yield what differs between the candidates, one sentence per line."""
    groups = (
        ("changed by all", differences.by_all),
        ("changed by some", differences.by_some),
        ("changed by one", differences.by_one),
    )
    for words, paths in groups:
        if paths:
            shown = [_path(each, with_names=paths is not differences.by_all) for each in paths]
            yield f"- {words}: {list_names(shown, _PATHS)}"
    same = [_place(each) for each in differences.identical]
    if same:
        yield f"- same change: {list_names(same, _PATHS)}"
    unlike = [_place(each) for each in differences.overlapping]
    if unlike:
        yield f"- changed differently: {list_names(unlike, _PATHS)}"
    tools = differences.tools
    if len(tools.trials) > 1:
        begin = f"{count(len(tools.common), 'call')} in common, then" if tools.common else "no call in common; first"
        yield f"- tools: {begin} {', '.join(_next_tools(tools.trials))}"
    if differences.unread:
        yield f"- not compared, because the patch is missing or too large: {', '.join(differences.unread)}"


def selection_text(selection: Selection) -> str:
    """Return the selection as one sentence."""
    found = "no winner" if selection.winner is None else f"selected: {selection.winner}"
    return one_line(f"{found} ({selection.strategy}: {selection.note})", _SELECTION)


def _place(changed: SharedChange) -> str:
    """Return the place of a change; a file that the start does not have, or had no lines, has no line number."""
    line = f":{changed.line}" if changed.line else ""
    return f"{one_line(changed.path, 200)}{line} ({', '.join(changed.trials)})"


def _path(changed: ChangedPath, *, with_names: bool) -> str:
    path = one_line(changed.path, 200)
    return f"{path} ({cells.who_text(changed)})" if with_names else path


def _next_tools(trials: Sequence[ToolSequence]) -> Iterator[str]:
    """Yield each tool that follows the common calls, with the trials that call it."""
    who: dict[str, list[str]] = {}
    for each in trials:
        who.setdefault(one_line(each.first_different or "no further call", _NAME), []).append(each.trial)
    return (f"{tool} ({list_names(names, _PATHS)})" for tool, names in who.items())
