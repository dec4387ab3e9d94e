"""Callbacks by event type: called in order, independently of exceptions of other callbacks."""

import pytest
from tests.unit.run.scripted_run import DONE, feed, line, normalizer, printed

from agent_mux.run.readers import Listeners

EVENTS = feed(normalizer(), [*printed(line(text="a"), line(text="b")), DONE])


def test_each_is_called_for_its_type_in_order() -> None:
    warnings: list[str] = []
    listeners, heard = Listeners(warnings.append), []
    listeners.on("text_delta", lambda event: heard.append(("first", event.delta)))
    listeners.on("text_delta", lambda event: heard.append(("second", event.delta)))
    listeners.on("nothing", heard.append)
    listeners.call(EVENTS)
    assert heard == [("first", "a"), ("second", "a"), ("first", "b"), ("second", "b")]
    assert warnings == []


def test_a_star_receives_every_event() -> None:
    listeners, heard = Listeners(lambda _: None), []
    listeners.on("*", heard.append)
    listeners.call(EVENTS)
    assert heard == EVENTS


def test_a_once_handler_is_called_once() -> None:
    listeners, heard = Listeners(lambda _: None), []
    listeners.on("text_delta", heard.append, once=True)
    listeners.call(EVENTS)
    assert [event.delta for event in heard] == ["a"]


def test_off_removes_a_handler_and_ignores_unknown_ones() -> None:
    listeners, heard = Listeners(lambda _: None), []
    listeners.on("text_delta", heard.append)
    listeners.off("text_delta", heard.append)
    listeners.off("text_delta", heard.append)
    listeners.call(EVENTS)
    assert heard == []


def test_a_handler_that_raises_is_logged_with_its_traceback_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warnings: list[str] = []
    listeners, heard = Listeners(warnings.append), []
    listeners.on("text_delta", lambda _: 1 / 0)
    listeners.on("text_delta", heard.append)
    listeners.call(EVENTS)
    assert len(heard) == 2
    assert len(warnings) == 2
    assert "ZeroDivisionError" in warnings[0]
    logged = [record for record in caplog.records if record.name == "agent_mux" and record.exc_info]
    assert [record.exc_info[0] for record in logged if record.exc_info] == [ZeroDivisionError] * 2


def test_a_handler_that_raises_on_its_own_warning_is_not_warned_about_again() -> None:
    listeners = Listeners(lambda _: listeners.call(EVENTS))
    calls: list[str] = []

    def bad(event: object) -> None:
        calls.append("called")
        raise RuntimeError("again")

    listeners.on("turn_start", bad)
    listeners.call(EVENTS)
    assert calls == ["called", "called"]
