"""`on`, `once` and `off` of a run: by event class and by name, as calls and as decorators."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEventType, BaseEvent, TextDeltaEvent, ToolErrorEvent, UnknownEvent
from agent_mux.run.readers import Listeners
from agent_mux.run.subscriptions import Subscriptions, event_name


class RecordingRun(Subscriptions):
    """A run whose events are sent by the test."""

    def __init__(self) -> None:
        self.listeners = Listeners(pytest.fail)

    def _add_handler(self, event_type: str, handler: Callable[[Any], object], *, once: bool) -> None:
        self.listeners.on(event_type, handler, once=once)

    def _remove_handler(self, event_type: str, handler: Callable[[Any], object]) -> None:
        self.listeners.off(event_type, handler)


def error_event(message: str) -> Any:
    return ToolErrorEvent("0" * 26, "a", 1, tool_call_id="1", tool_name="Bash", error=message)


@pytest.mark.parametrize("event_type", [ToolErrorEvent, "tool_error", AgentEventType.TOOL_ERROR, BaseEvent, "*"])
def test_handler_is_called_for_events_of_the_class_or_name(event_type: Any) -> None:
    run, seen = RecordingRun(), []
    assert run.on(event_type, seen.append) is run
    event = error_event("no")
    run.listeners.call([event, event])
    assert seen == [event, event]
    run.off(event_type, seen.append)
    run.listeners.call([event])
    assert len(seen) == 2


def test_handler_is_not_called_for_other_events() -> None:
    run, seen = RecordingRun(), []
    run.on(TextDeltaEvent, seen.append).on("text_delta", seen.append)
    run.listeners.call([error_event("no")])
    assert seen == []


def test_decorated_functions_are_handlers_and_unchanged() -> None:
    run, seen = RecordingRun(), []

    @run.on(ToolErrorEvent)
    def by_class(event: ToolErrorEvent) -> str:
        seen.append(("class", event.error))
        return event.error

    @run.once("tool_error")
    def by_name(event: ToolErrorEvent) -> None:
        seen.append(("name", event.error))

    run.listeners.call([error_event("1"), error_event("2")])
    assert seen == [("class", "1"), ("name", "1"), ("class", "2")]
    assert by_class(error_event("3")) == "3"
    assert callable(by_name)


@pytest.mark.parametrize(
    ("event_type", "message"),
    [
        ("text_dela", "no event is named 'text_dela'; did you mean 'text_delta'?"),
        ("zebra", "no event is named 'zebra'; docs/reference/events.md lists the events; '*' stands for all"),
        (7, "no event is named 7; docs/reference/events.md lists the events; '*' stands for all"),
        (dict, "dict is not an event class of agent_mux.events"),
        (UnknownEvent, "UnknownEvent is not an event class of agent_mux.events"),
    ],
)
def test_unknown_event_raises(event_type: Any, message: str) -> None:
    for subscribe in (RecordingRun().on, RecordingRun().once):
        with pytest.raises(AgentMuxError) as raised:
            subscribe(event_type)
        assert (raised.value.code, str(raised.value)) == ("VALIDATION_ERROR", message)
    with pytest.raises(AgentMuxError):
        RecordingRun().off(event_type, print)


def test_handler_that_could_not_work_is_refused() -> None:
    async def later(event: BaseEvent) -> None:
        """Never awaited."""

    with pytest.raises(
        AgentMuxError, match=r"later is a coroutine function, which would never be awaited; use a plain"
    ):
        RecordingRun().on("*", later)
    with pytest.raises(AgentMuxError, match="must be a function; got 5"):
        RecordingRun().on("*", 5)  # type: ignore[call-overload]


def test_every_event_class_has_its_name() -> None:
    assert event_name(TextDeltaEvent) == "text_delta"
    assert event_name(BaseEvent) == "*"
