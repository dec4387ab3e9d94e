"""Ctrl-Z: pause the agent, stop this process, and resume both when the shell continues it (`fg`, `bg`)."""

import signal
import threading
from collections.abc import Callable

import anyio
from anyio import lowlevel

from agent_mux.errors import AgentMuxError
from agent_mux.run.base import Run

PAUSE_TIMEOUT = 2.0  # seconds for the agent to be paused or resumed; a run that still waits to start is not waited for


def suspending_signals() -> list[signal.Signals]:
    """Return SIGTSTP, unless the parent process ignores it because it has no job control."""
    return [] if signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN else [signal.SIGTSTP]


async def suspend(run: Run, warn: Callable[[str], None]) -> None:
    """Pause the agent, stop this process until it is continued, and resume the agent.

    An agent that was paused before stays paused. `warn` receives why the agent could not be paused or resumed; this
    process stops in any case. Call it in the main thread.
    """
    is_paused = run.state != "paused" and await _reach(run, "pause", warn)
    stop_until_continued()
    for _ in range(2):  # timers that expired meanwhile see a paused run
        await lowlevel.checkpoint()
    if is_paused:
        await _reach(run, "resume", warn)


def stop_until_continued() -> None:
    """Stop this process with SIGTSTP; return when it is continued.

    As for every program, the kernel ignores the signal where no shell could continue the process.
    """
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        # To this thread: it is stopped before it restores the handler.
        signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, handler)


async def _reach(run: Run, what: str, warn: Callable[[str], None]) -> bool:
    """Pause or resume the run. Return whether it worked; a run that has ended needs neither."""
    try:
        with anyio.fail_after(PAUSE_TIMEOUT):
            await (run.pause() if what == "pause" else run.resume())
    except AgentMuxError as error:
        if error.code != "RUN_NOT_ACTIVE":
            warn(f"cannot {what} the agent: {error.message}")
        return False
    except TimeoutError:
        warn(f"cannot {what} the agent: it has not started yet")
        return False
    return True
