"""Continue a session by its name: `RunOptions.session_name`."""

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.events import SessionStartEvent
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.sdk.options import RunOptions, validate_options
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.names import NamedSessions

MAX_STORE_WAIT = 5.0  # seconds; a disk that does not respond must not block the client
SYNTHETIC = "transient-"
"""Beginning of the session ids that agents did not report."""


def with_named_session(options: RunOptions, adapters: AdapterRegistry, config_dir: Path) -> RunOptions:
    """Replace the name of a session by the id that it stands for; by nothing if the name is new.

    Raises `ValidationError` for other options of the session, `CapabilityError` if the agent cannot resume sessions.
    """
    validate_options(options)
    adapter = adapters.get(options.agent)
    if not adapter.capabilities.can_resume:
        hint = "omit session_name (--session-name)"
        raise CapabilityError(adapter.agent, "resuming a session, which a session name needs", hint=hint)
    name, directory = options.session_name or "", Path(options.working_directory())
    known = NamedSessions(config_dir).find(name, adapter.agent, directory)
    return replace(options, session_name=None, session_id=known)


def store_at_start(handle: RunHandle, options: RunOptions, config_dir: Path) -> None:
    """Let the name continue the session of a run as soon as the agent reports its id.

    The file is written before anybody can see the result, so that the next run of the name continues this one.
    """

    def store(event: SessionStartEvent) -> None:
        session, name = event.session_id, options.session_name
        if session.startswith(SYNTHETIC) or name is None:
            return
        try:
            names = NamedSessions(config_dir)
            names.store(name, handle.agent, Path(options.working_directory()), session)
        except (AgentMuxError, OSError) as error:
            logging.getLogger(LOGGER).warning("the session name %r was not stored: %s", name, error)

    handle.on(SessionStartEvent, store)


async def forget_lost_session(options: RunOptions, result: RunResult, config_dir: Path) -> None:
    """Forget a name whose session the agent no longer has, so that the next run starts one. Never raises."""
    name = options.session_name
    if name is None or result.error is None or result.error.code != "SESSION_NOT_FOUND":
        return
    forget = partial(
        NamedSessions(config_dir).forget, name, agent=result.agent, directory=Path(options.working_directory())
    )
    with anyio.move_on_after(MAX_STORE_WAIT, shield=True):
        try:
            await to_thread.run_sync(forget, abandon_on_cancel=True)
        except (AgentMuxError, OSError) as error:
            logging.getLogger(LOGGER).warning("the session name %r was not removed: %s", name, error)
