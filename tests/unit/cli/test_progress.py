"""The progress line: after a delay, on a terminal only, erased at the end."""

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


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def test_long_work_shows_progress_and_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_quick_work_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 60.0)
    with progress("reading"):
        pass
    assert terminal.getvalue() == ""


def test_progress_is_not_written_to_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 0.0)
    with progress("reading"):
        pass
    assert pipe.getvalue() == ""


def test_progress_is_not_written_to_a_terminal_without_cursor_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PROGRESS_DELAY", 0.0)
    monkeypatch.setenv("TERM", "dumb")
    with progress("reading"):
        assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert terminal.getvalue() == ""


def test_progress_stops_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError), progress("reading"):
        raise ZeroDivisionError
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_progress_shows_the_count() -> None:
    shown = Progress("reading sessions")
    assert re.fullmatch(r"reading sessions\.\.\. \d+ s", shown.sentence())
    for _ in range(1234):
        shown.tick()
    assert re.fullmatch(r"reading sessions\.\.\. 1,234, \d+ s", shown.sentence())
