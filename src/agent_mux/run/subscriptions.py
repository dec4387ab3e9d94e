"""Handlers of a run's events: `on`, `once` and `off`, typed by event class or by event name.

run.on(TextDeltaEvent, lambda event: print(event.delta, end=""))

@run.on("tool_error")
def report(event: ToolErrorEvent) -> None: ...
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, cast, overload

from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEventType, BaseEvent, EventName
from agent_mux.run.handlers import check_handler

if TYPE_CHECKING:
    from agent_mux.run.event_overloads import Subscribe

ANY: Literal["*"] = "*"
"""The name that stands for events of every type."""
AnyEventName = EventName | AgentEventType | Literal["*"]
_Handler = Callable[[Any], object]
_Event = TypeVar("_Event", bound=BaseEvent)
_Result = TypeVar("_Result")
_Decorated = TypeVar("_Decorated", bound=_Handler)


class Subscriptions(Protocol):
    """The methods of a run that add and remove handlers of its events.

    Handlers are plain functions that must not block. Without a handler, `on` and `once` are decorators. An unknown
    event, or a coroutine function as a handler, raises VALIDATION_ERROR.
    """

    def _add_handler(self, event_type: str, handler: _Handler, *, once: bool) -> None:
        """Call `handler` for each event with this name (`*`: all), or only for the next one."""

    def _remove_handler(self, event_type: str, handler: _Handler) -> None:
        """Stop calling `handler` for events with this name."""

    if TYPE_CHECKING:

        @property
        def on(self) -> Subscribe[Self]:
            """Call a handler for each event of a class or name."""
            return cast("Subscribe[Self]", self)  # a body, or subclasses would be abstract

        @property
        def once(self) -> Subscribe[Self]:
            """Call a handler for the next event of a class or name."""
            return cast("Subscribe[Self]", self)  # a body, or subclasses would be abstract

    else:

        @overload
        def on(self, event_type: type[_Event], handler: Callable[[_Event], object]) -> Self: ...
        @overload
        def on(self, event_type: AnyEventName, handler: _Handler) -> Self: ...
        @overload
        def on(
            self, event_type: type[_Event]
        ) -> Callable[[Callable[[_Event], _Result]], Callable[[_Event], _Result]]: ...
        @overload
        def on(self, event_type: AnyEventName) -> Callable[[_Decorated], _Decorated]: ...
        def on(self, event_type: type[BaseEvent] | str, handler: _Handler | None = None) -> Any:
            """Call `handler` for each event of a class or name (`BaseEvent` or `*`: all), as it happens.

            Returns the run; without a handler, a decorator.
            """
            return self._subscribe(event_type, handler, once=False)

        @overload
        def once(self, event_type: type[_Event], handler: Callable[[_Event], object]) -> Self: ...
        @overload
        def once(self, event_type: AnyEventName, handler: _Handler) -> Self: ...
        @overload
        def once(
            self, event_type: type[_Event]
        ) -> Callable[[Callable[[_Event], _Result]], Callable[[_Event], _Result]]: ...
        @overload
        def once(self, event_type: AnyEventName) -> Callable[[_Decorated], _Decorated]: ...
        def once(self, event_type: type[BaseEvent] | str, handler: _Handler | None = None) -> Any:
            """Call `handler` as with `on`, for the next event only."""
            return self._subscribe(event_type, handler, once=True)

    @overload
    def off(self, event_type: type[_Event], handler: Callable[[_Event], object]) -> Self: ...
    @overload
    def off(self, event_type: AnyEventName, handler: _Handler) -> Self: ...
    def off(self, event_type: type[BaseEvent] | str, handler: _Handler) -> Any:
        """Stop calling this handler for this class or name."""
        self._remove_handler(event_name(event_type), handler)
        return self

    def _subscribe(self, event_type: type[BaseEvent] | str, handler: _Handler | None, *, once: bool) -> Any:
        name = event_name(event_type)
        if handler is not None:
            self._add_handler(name, check_handler(handler), once=once)
            return self

        def decorate(function: _Decorated) -> _Decorated:
            self._add_handler(name, check_handler(function), once=once)
            return function

        return decorate


def event_name(event_type: type[BaseEvent] | str) -> str:
    """Return the name of an event that is given by class or by name; `*` for `BaseEvent`.

    Raises VALIDATION_ERROR for anything else.
    """
    known = [name.value for name in AgentEventType]
    if isinstance(event_type, type):
        if event_type is BaseEvent:
            return ANY
        if issubclass(event_type, BaseEvent) and event_type.type in known:
            return event_type.type
        raise AgentMuxError("VALIDATION_ERROR", f"{event_type.__name__} is not an event class of agent_mux.events")
    if event_type == ANY or event_type in known:
        return str(event_type)
    hint = did_you_mean(str(event_type), known, "docs/reference/events.md lists the events; '*' stands for all")
    raise AgentMuxError("VALIDATION_ERROR", f"no event is named {event_type!r}; {hint}")
