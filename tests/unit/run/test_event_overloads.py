"""Type checkers know the class of each event name: the overloads of `on` and `once` are those of the union."""

from typing import Any, Literal, get_args, get_origin, get_overloads, get_type_hints

from agent_mux.events import ALL_EVENTS, AgentEventType
from agent_mux.run.event_overloads import Subscribe


def classes_by_names(argument: str) -> dict[tuple[Any, ...], Any]:
    """Return the event class of each overload for one name, by the names; `argument` has the class in its type."""

    def implementation() -> None: ...  # a protocol has none, by which Python finds the overloads

    implementation.__module__, implementation.__qualname__ = Subscribe.__module__, "Subscribe.__call__"
    found = {}
    for overload in get_overloads(implementation):
        hints = get_type_hints(overload)
        is_form = ("handler" in hints) == (argument == "handler")
        if is_form and get_origin(hints["event_type"]) is Literal:
            taken = get_args(hints[argument])[0]
            found[get_args(hints["event_type"])] = taken[0] if isinstance(taken, list) else taken
    return found


def test_each_name_has_the_handler_and_the_decorator_of_its_class() -> None:
    expected = {(event.type, AgentEventType(event.type)): event for event in ALL_EVENTS}
    assert classes_by_names("handler") == expected
    assert classes_by_names("return") == expected
