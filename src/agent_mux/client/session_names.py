"""Continue a session by its name: `RunOptions.session_name`."""

import logging
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from agent_mux._util.logs import LOGGER
from agent_mux.client.held_session import SYNTHETIC
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.events import SessionStartEvent
from agent_mux.run.result import RunResult
from agent_mux.sdk.options import RunOptions, validate_options
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.names import NamedSessions

_LOGGER = logging.getLogger(LOGGER)


def with_named_session(options: RunOptions, adapters: AdapterRegistry, config_dir: Path) -> RunOptions:
    """Replace the name of a session by the id that it stands for. A new name stays: the agent must keep this session.

    Raises `ValidationError` for other options of the session, `CapabilityError` if the agent cannot resume sessions.
    """
    validate_options(options)
    adapter = adapters.get(options.agent)
    if not adapter.capabilities.can_resume:
        hint = "omit session_name (--session-name)"
        raise CapabilityError(adapter.agent, "resuming a session, which a session name needs", hint=hint)
    name, directory = options.session_name or "", Path(options.working_directory())
    known = NamedSessions(config_dir).find(name, adapter.agent, directory)
    return options if known is None else replace(options, session_name=None, session_id=known)


class NamedRun:
    """The name of the session of one run: reserved for it, stored when the agent reports its session."""

    def __init__(self, options: RunOptions, agent: str, run_id: str, config_dir: Path) -> None:
        """Reserve the name for a run. Raises INVALID_STATE_TRANSITION while another run uses it, and CONFIG_ERROR."""
        self._name = options.session_name or ""
        self._agent = agent
        self._directory = Path(options.working_directory())
        self._names = NamedSessions(config_dir)
        self._reservation = ExitStack()
        self._reservation.callback(self._names.reserve(self._name, agent, self._directory, run_id))

    def store(self, event: SessionStartEvent) -> None:
        """Let the name continue the session of the run from now on.

        The file is written before anybody can see the result, so that the next run of the name continues this one.
        """
        if event.session_id.startswith(SYNTHETIC):
            return
        try:
            self._names.store(self._name, self._agent, self._directory, event.session_id)
        except (AgentMuxError, OSError) as error:
            _LOGGER.warning("the session name %r was not stored: %s", self._name, error)

    def end(self, result: RunResult) -> None:
        """Release the name. Forget it if the agent no longer has its session, so that its next run starts one.

        Must be called before anybody can see the result.
        """
        try:
            if result.error is not None and result.error.code == "SESSION_NOT_FOUND":
                self._names.forget(self._name, agent=self._agent, directory=self._directory)
                _LOGGER.warning("the session of the name %r is gone; the next run of it starts one", self._name)
        except (AgentMuxError, OSError) as error:
            _LOGGER.warning("the session name %r was not removed: %s", self._name, error)
        finally:
            self.release()

    def release(self) -> None:
        """Allow other runs to use the name. May be called again."""
        self._reservation.close()
