"""A reaper that is started ahead of its client."""

import pytest

from agent_mux.process import reaper as reapers
from agent_mux.process.reaper import Reaper, reaper_started_ahead

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_the_first_client_takes_the_reaper_that_was_started_ahead() -> None:
    with reaper_started_ahead():
        (early,) = reapers._ahead.values()
        first, second = Reaper(), Reaper()
        try:
            first.watch(RUN)
            second.watch(RUN)
            assert first._process is early
            assert second._process is not early
        finally:
            first.close()
            second.close()
    assert early.returncode is not None, "closed by its client"
    assert not reapers._ahead


def test_a_reaper_that_nobody_took_is_ended() -> None:
    with reaper_started_ahead():
        (early,) = reapers._ahead.values()
        assert early.poll() is None
    assert early.returncode is not None


def test_a_reaper_that_cannot_be_started_ahead_is_left_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(reapers, "_start_process", fail)
    with reaper_started_ahead():
        assert not reapers._ahead
        with pytest.raises(BlockingIOError):
            Reaper().watch(RUN)
