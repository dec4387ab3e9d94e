"""A sign of life: after a while, on a terminal only, and gone afterwards."""

import io
import re
import sys
import threading

import pytest

from agent_mux.cli import terminal as module
from agent_mux.cli.terminal import Progress, progress


class Terminal(io.StringIO):
    """One that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


def test_what_takes_long_is_told_and_the_line_is_clean_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 0.0)
    monkeypatch.setattr(module, "PROGRESS_INTERVAL", 0.001)
    with progress("reading") as shown:
        shown.tick()
        assert terminal.written.wait(30)
    told = terminal.getvalue()
    assert told.startswith("\r\x1b[Kreading... ")
    assert told.endswith("\r\x1b[K")


def test_what_is_quick_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 60.0)
    with progress("reading"):
        pass
    assert terminal.getvalue() == ""


def test_nothing_is_told_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 0.0)
    with progress("reading"):
        pass
    assert pipe.getvalue() == ""


def test_it_ends_also_when_something_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError), progress("reading"):
        raise ZeroDivisionError
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_how_far_it_is() -> None:
    shown = Progress("reading sessions")
    assert re.fullmatch(r"reading sessions\.\.\. \d+ s", shown.sentence())
    for _ in range(1234):
        shown.tick()
    assert re.fullmatch(r"reading sessions\.\.\. 1,234, \d+ s", shown.sentence())
