"""Ctrl-Z: stop what the program runs, stop the program, and continue both when the shell continues it (`fg`, `bg`)."""

import time
from collections.abc import Sequence

from agent_loop.suspension import Suspendable
from agent_mux.cli.suspension import stop_until_continued


async def suspend(running: Sequence[Suspendable]) -> None:
    """Stop `running` and this process until it is continued, and continue `running`. Call it in the main thread."""
    for one in running:
        await one.pause()
    stopped_at = time.monotonic()
    stop_until_continued()
    seconds = time.monotonic() - stopped_at
    for one in running:  # before the event loop sees expired time limits
        one.add_time(seconds)
    for one in running:
        await one.resume()
