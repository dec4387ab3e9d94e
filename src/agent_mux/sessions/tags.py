"""Tags of sessions: those of its runs, from the run indexes, and those that a person gave it (`tag_store`).

The agents' files do not contain tags. The index of a run is in the project in which it ran, or in the global directory,
so both are read for each session, and the index of the current project. See docs/spec/run-api.md, sections 1 and 6.
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
from agent_mux.sessions.tag_store import FILE, read_tags
from agent_mux.settings.json_files import FileCache

_TagIndex = Mapping[tuple[str, str], tuple[str, ...]]
TagsOf = Callable[[SessionSummary], tuple[str, ...]]


class SessionTags:
    """Looks up the tags of sessions. A run index is read again when its file changes."""

    def __init__(self, config_dir: Path, project_config_dir: Path | None = None) -> None:
        """`config_dir` is the global directory; `project_config_dir` replaces the one of the current project."""
        self._config_dir = config_dir
        self._project_config_dir = project_config_dir
        self._indexes = FileCache(_read_tag_index)
        self._given = FileCache(_read_given_tags)

    @property
    def directory(self) -> Path:
        """The global directory, where tags are stored."""
        return self._config_dir

    def load(self) -> TagsOf:
        """Return a function that returns the current tags of a session: those of all its runs, without duplicates."""
        here = [self._config_dir, project_dir(named=self._project_config_dir)]
        project_of = cache(project_dir)
        by_person = self._given.get(self._config_dir / FILE)

        def tags_of(summary: SessionSummary) -> tuple[str, ...]:
            directories = [*here, None if summary.cwd is None else project_of(summary.cwd)]
            session = (summary.agent, summary.native_id)
            unique = [directory for directory in dict.fromkeys(directories) if directory is not None]
            found = [self._index_in(directory).get(session, ()) for directory in unique]
            found.append(by_person.get(summary.id, ()))
            return tuple(dict.fromkeys(tag for tags in found for tag in tags))

        return tags_of

    def _index_in(self, directory: Path) -> _TagIndex:
        return self._indexes.get(directory / INDEX)


def _read_given_tags(path: Path) -> Mapping[str, tuple[str, ...]]:
    try:
        return read_tags(path)
    except AgentMuxError as error:  # a damaged file must not fail a listing
        logging.getLogger(LOGGER).warning("sessions may lack tags: %s", error)
        return {}


def _read_tag_index(path: Path) -> _TagIndex:
    index: dict[tuple[str, str], tuple[str, ...]] = {}
    try:
        for record in read_index(path):
            if record.session_id is not None and record.tags:
                session = (record.agent, record.session_id)
                index[session] = (*index.get(session, ()), *record.tags)
    except AgentMuxError as error:  # a damaged index must not fail a listing
        logging.getLogger(LOGGER).warning("sessions may lack tags: %s", error)
    return index
