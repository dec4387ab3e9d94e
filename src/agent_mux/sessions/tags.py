"""Tags of sessions: those of the runs that they came of, by agent and id. The agents' files know nothing of them.

The index of a run is in the project that it worked in, or in the global directory; so for each session both are looked
at, and that of the current project. Source: run API, sections 1 (run index) and 6.
"""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from agent_mux._util.logs import LOGGER
from agent_mux._util.paths import project_dir
from agent_mux.errors import AgentMuxError
from agent_mux.journal.run_index import INDEX, read_index
from agent_mux.sessions.summary import SessionSummary
from agent_mux.settings.documents import Remembered

_Known = Mapping[tuple[str, str], tuple[str, ...]]
TagsOf = Callable[[SessionSummary], tuple[str, ...]]


class SessionTags:
    """Finds the tags of sessions. Indexes are read again when they changed."""

    def __init__(self, config_dir: Path, project_config_dir: Path | None = None) -> None:
        """The global directory, and that of a project instead of looking for the one we are in."""
        self._config_dir = config_dir
        self._named = project_config_dir
        self._indexes = Remembered(_tags_by_session)

    def look(self) -> TagsOf:
        """What tells the tags of a session, as it is now. Several runs of one session: all of their tags, once each."""
        here = [self._config_dir, project_dir(named=self._named)]
        project_of = cache(project_dir)

        def tags_of(summary: SessionSummary) -> tuple[str, ...]:
            places = [*here, None if summary.cwd is None else project_of(summary.cwd)]
            session = (summary.agent, summary.native_id)
            found = [self._tags_in(place).get(session, ()) for place in dict.fromkeys(places) if place is not None]
            return tuple(dict.fromkeys(tag for tags in found for tag in tags))

        return tags_of

    def _tags_in(self, place: Path) -> _Known:
        return self._indexes.of(place / INDEX)


def _tags_by_session(path: Path) -> _Known:
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    try:
        for record in read_index(path):
            if record.session_id is not None and record.tags:
                session = (record.agent, record.session_id)
                known[session] = (*known.get(session, ()), *record.tags)
    except AgentMuxError as error:  # no listing fails for it
        logging.getLogger(LOGGER).warning("sessions may lack tags: %s", error)
    return known
