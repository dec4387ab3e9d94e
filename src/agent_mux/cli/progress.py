"""A sign of life on the terminal for whatever takes longer than a second. Nothing where nobody looks."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agent_mux.cli.terminal import is_terminal, width_of

PATIENCE = 1.0  # seconds before anything is shown
STEP = 0.2  # seconds between two signs
_ERASE = "\r\x1b[K"


class Progress:
    """What is being done, how long for, and how far it is."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self.count = 0
        """How many things are done; whoever does them adds to it."""

    def sentence(self) -> str:
        """As it is now."""
        seconds = int(time.monotonic() - self._began)
        return f"{self._what}... {f'{self.count:,}, ' if self.count else ''}{seconds} s"

    def tick(self) -> None:
        """One more is done."""
        self.count += 1


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Say on standard error that this goes on, from the second second; gone when it is over, and never in a pipe."""
    shown = Progress(what)
    if not is_terminal(sys.stderr):
        yield shown
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(shown, over), name="progress", daemon=True)
    teller.start()
    try:
        yield shown
    finally:
        over.set()
        teller.join()


def _tell(shown: Progress, over: threading.Event) -> None:
    if over.wait(PATIENCE):
        return
    while True:
        sys.stderr.write(_ERASE + shown.sentence()[: width_of(sys.stderr) - 1])
        sys.stderr.flush()
        if over.wait(STEP):
            break
    sys.stderr.write(_ERASE)
    sys.stderr.flush()
