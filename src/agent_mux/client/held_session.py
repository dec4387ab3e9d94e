"""The session of a run, which no other run of this user may use at the same time."""

import logging
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.events import SessionStartEvent

SYNTHETIC = "transient-"
"""Beginning of the session ids that agents did not report."""
_LOGGER = logging.getLogger(LOGGER)


class HeldSession:
    """The reservations of the sessions that a run continues and begins. Blocking."""

    def __init__(self, agent: str, run_id: str, config_dir: Path) -> None:
        """Reserve nothing yet."""
        self._agent = agent
        self._run_id = run_id
        self._config_dir = config_dir
        self._held = ExitStack()
        self._ids: set[str] = set()

    def hold(self, session_id: str) -> None:
        """Reserve a session. Raises INVALID_STATE_TRANSITION while another run uses it.

        In a directory that cannot be written, nothing is reserved: such a run keeps no recording, either.
        """
        if session_id in self._ids or session_id.startswith(SYNTHETIC):
            return
        from agent_mux.sessions.reservations import reserve_session  # noqa: PLC0415  # the agent starts before this import

        in_use = partial(_used, self._agent, session_id)
        release = reserve_session(self._config_dir, self._agent, session_id, self._run_id, in_use)
        self._ids.add(session_id)
        self._held.callback(release)

    def hold_begun(self, event: SessionStartEvent) -> None:
        """Reserve the session that the agent has begun or continued, if no other run has it."""
        try:
            self.hold(event.session_id)
        except AgentMuxError as error:
            _LOGGER.debug("the session %s is not reserved: %s", event.session_id, error)

    def release(self) -> None:
        """Allow other runs to use the sessions. May be called again."""
        self._held.close()
        self._ids.clear()


def _used(agent: str, session_id: str, run: str) -> str:
    if not run:  # a rename, or a run that has not yet written its id
        return f"the session {session_id} of {agent} is in use or being changed; wait for the end, or fork the session"
    next_step = f"wait for its end, send it a prompt with `amux runs queue {run}`, or fork the session (--fork)"
    return f"the session {session_id} of {agent} is used by run {run}; {next_step}"
