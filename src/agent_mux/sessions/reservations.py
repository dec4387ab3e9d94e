"""Reserve a session for one run: two runs of one session at a time would lose a turn of it, or fail in the agent.

A reservation is a locked file in the global directory, so that it ends with the process that holds it.
"""

import fcntl
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError

LOCKS = "locks"
"""The directory of the locks, in the global one."""
MAX_RUN_ID = 100  # bytes
MAX_TRIES = 10
"""How often a lock is opened whose file is removed meanwhile, which happens at the end of each reservation."""


def reserve_session(
    config_dir: Path, agent: str, session_id: str, run_id: str, in_use: Callable[[str], str]
) -> Callable[[], None]:
    """Reserve a session as `reserve` does. Nothing is reserved in a directory that cannot be written.

    `session_id`: as the agent reports it; `run_id`: empty without a run.
    """
    try:
        return reserve(config_dir, ("id", agent, session_id), run_id, in_use)
    except AgentMuxError as error:
        if error.code != "CONFIG_ERROR":
            raise
        logging.getLogger(LOGGER).debug("the session %s of %s is not reserved: %s", session_id, agent, error)
        return lambda: None


def reserve(config_dir: Path, key: tuple[str, ...], run_id: str, in_use: Callable[[str], str]) -> Callable[[], None]:
    """Reserve a key for one run, until the returned function is called or this process ends. Blocking.

    Raises:
        AgentMuxError: INVALID_STATE_TRANSITION with `in_use(run)` while another run has the key; CONFIG_ERROR if the
            directory cannot be written.
    """
    digest = hashlib.sha256(os.fsencode("\0".join(key))).hexdigest()[:32]
    path = config_dir / LOCKS / f"session-{digest}.lock"
    try:
        make_directory(path.parent)
        for _ in range(MAX_TRIES):
            descriptor = _locked(path, in_use)
            if _is_file_of(path, descriptor):
                break
            os.close(descriptor)  # the run that had it has removed the file between our two steps
        else:
            raise AgentMuxError("INVALID_STATE_TRANSITION", in_use(""))
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {path}: {error.strerror or error}") from error
    with suppress(OSError):  # a full disk; the id is for the message above only
        os.ftruncate(descriptor, 0)
        os.write(descriptor, run_id.encode())
    return partial(_release, path, descriptor)


def _locked(path: Path, in_use: Callable[[str], str]) -> int:
    """Return the descriptor of the locked file. Raises INVALID_STATE_TRANSITION if another run has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        run = os.read(descriptor, MAX_RUN_ID).decode("ascii", "replace")
        os.close(descriptor)
        raise AgentMuxError("INVALID_STATE_TRANSITION", in_use(run)) from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_file_of(path: Path, descriptor: int) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(path: Path, descriptor: int) -> None:
    with suppress(OSError):
        path.unlink()
    os.close(descriptor)
