"""Which session an id means: its own, or the beginning of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from agent_mux.errors import AgentMuxError
from agent_mux.sessions.summary import SessionSummary

SHORTEST_PREFIX = 4  # characters of an id that may stand for it
_Known = TypeVar("_Known")


def chosen(
    session: str, native_id: str, known: Iterable[_Known], summary_of: Callable[[_Known], SessionSummary]
) -> _Known:
    """The one of these with this id, or the only one whose id begins so.

    `session` is what was asked for, `native_id` what of it names a session. Raises SESSION_NOT_FOUND: none, or several.
    """
    exact: dict[str, _Known] = {}
    begin_so: dict[str, _Known] = {}
    for one in known:
        summary = summary_of(one)
        if summary.native_id == native_id:
            found = exact
        elif len(native_id) >= SHORTEST_PREFIX and summary.native_id.startswith(native_id):
            found = begin_so
        else:
            continue
        # Of copies with one id, in several places, the one that was changed last.
        if summary.id not in found or summary.updated_at > summary_of(found[summary.id]).updated_at:
            found[summary.id] = one
    candidates = exact or begin_so
    if len(candidates) != 1:
        raise AgentMuxError("SESSION_NOT_FOUND", _not_one(session, sorted(candidates)))
    return next(iter(candidates.values()))


def _not_one(session: str, candidates: Sequence[str]) -> str:
    if not candidates:
        return f"no stored session has the id {session!r}; `amux sessions list` shows those there are"
    ids = ", ".join(candidates[:5])
    return f"{session!r} may be any of {len(candidates)} sessions ({ids}); give more of its id"
