"""What differs between candidates, and which trial is selected, in sentences."""

from collections.abc import Iterator, Sequence

from agent_evaluation.strategies.trials import Selection
from agent_mux._util.sanitize import one_line
from agent_mux.api.comparisons import ChangedPath, DifferencesView
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
            yield f"- {words}: {_listed([_path(each, with_names=paths is not differences.by_all) for each in paths])}"
    same = [f"{one_line(each.path, 200)}:{each.line} ({', '.join(each.trials)})" for each in differences.identical]
    if same:
        yield f"- same change: {_listed(same)}"
    unlike = [f"{one_line(each.path, 200)}:{each.line} ({', '.join(each.trials)})" for each in differences.overlapping]
    if unlike:
        yield f"- changed differently: {_listed(unlike)}"
    tools = differences.tools
    if len(tools.trials) > 1:
        begin = f"{count(len(tools.common), 'call')} in common, then" if tools.common else "no call in common; first"
        parts = [f"{one_line(each.first_different or '(end)', _NAME)} ({each.trial})" for each in tools.trials[:_PATHS]]
        more = f" and {len(tools.trials) - _PATHS} more" if len(tools.trials) > _PATHS else ""
        yield f"- tools: {begin} {', '.join(parts)}{more}"
    if differences.unread:
        yield f"- not compared, because the patch is missing or too large: {', '.join(differences.unread)}"


def selection_text(selection: Selection) -> str:
    """Return the selection as one sentence."""
    found = "no winner" if selection.winner is None else f"selected: {selection.winner}"
    return one_line(f"{found} ({selection.strategy}: {selection.note})", _SELECTION)


def _path(changed: ChangedPath, *, with_names: bool) -> str:
    path = one_line(changed.path, 200)
    return f"{path} ({cells.who_text(changed)})" if with_names else path


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _PATHS} more" if len(items) > _PATHS else ""
    return ", ".join(items[:_PATHS]) + more
