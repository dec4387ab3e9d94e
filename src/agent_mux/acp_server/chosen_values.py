"""What users chose for their sessions in editors, kept for `session/load`: the mode, the model, the thinking effort.

The protocol has no place for choices in a stored session, and agents do not store them, so one private file of the
global directory has them.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.files import locked, read_text, write_text
from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json
from agent_mux.errors import AgentMuxError
from agent_mux.sessions.reservations import LOCKS

FILE = "editor-sessions.json"
MAX_SESSIONS = 2000  # those whose choices were made longest ago are dropped


class _Chosen(msgspec.Struct, frozen=True, rename="camel"):
    agent: str
    session: str
    """The id by which the editor knows the session."""
    values: dict[str, str | None]
    """The chosen values, by run option."""
    updated_at: int


class _File(msgspec.Struct):
    v: int = 1
    sessions: list[_Chosen] = []


class ChosenValues:
    """The choices of all sessions of this user. Blocking. An unusable file is logged: sessions work without it."""

    def __init__(self, config_dir: Path) -> None:
        """Use the file in this global directory."""
        self._path = config_dir / FILE
        self._locks = config_dir / LOCKS

    def read(self, agent: str, session_id: str) -> dict[str, str | None]:
        """Return what was chosen for a session, by run option."""
        try:
            return next((one.values for one in self._read() if (one.agent, one.session) == (agent, session_id)), {})
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("the choices of editor sessions are not available: %s", error)
            return {}

    def store(self, agent: str, session_id: str, values: Mapping[str, Any]) -> None:
        """Remember the choices of a session."""
        now = int(time.time() * 1000)
        new = _Chosen(agent, session_id, dict(values), now)
        try:
            with locked(self._path, locks=self._locks):
                others = [one for one in self._read() if (one.agent, one.session) != (agent, session_id)]
                latest = sorted([new, *others], key=lambda one: -one.updated_at)[:MAX_SESSIONS]
                write_text(self._path, to_json(_File(sessions=latest)) + "\n")
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("the choices of session %s are not stored: %s", session_id, error)

    def _read(self) -> list[_Chosen]:
        text = read_text(self._path)
        if text is None:
            return []
        try:
            return msgspec.json.decode(text, type=_File).sessions
        except (msgspec.DecodeError, RecursionError) as error:
            problem = f"{self._path} cannot be used: {error}; correct it, or remove it to forget all choices"
            raise AgentMuxError("CONFIG_ERROR", problem) from error
