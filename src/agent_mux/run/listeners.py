"""Callbacks by event type: called synchronously, in order; one that raises harms nobody. Run API, section 3."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from agent_mux.events import AgentEvent

Handler = Callable[[Any], Any]
ANY = "*"


class Listeners:
    """Who wants to be called for which events."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self._handlers: dict[str, list[tuple[Handler, bool]]] = defaultdict(list)
        self._warning = False

    def on(self, event_type: str, handler: Handler, *, once: bool = False) -> None:
        """Call `handler` for each event of this type (`*`: of every type), or only for the next one."""
        self._handlers[event_type].append((handler, once))

    def off(self, event_type: str, handler: Handler) -> None:
        """Call it no more. Nothing happens when it was not registered."""
        self._handlers[event_type] = [entry for entry in self._handlers[event_type] if entry[0] != handler]

    def call(self, events: Sequence[AgentEvent]) -> None:
        """Tell everybody."""
        if not self._handlers:
            return
        for event in events:
            for key in (event.type, ANY):
                for entry in tuple(self._handlers.get(key, ())):
                    if entry[1]:
                        self._handlers[key].remove(entry)
                    self.guard(entry[0], event)

    def guard(self, handler: Handler, value: Any) -> None:
        """Call one handler; if it raises, say so and go on."""
        try:
            handler(value)
        except Exception as error:  # noqa: BLE001  # a handler of the consumer's may raise anything
            if self._warning:
                return  # the handler raised on the warning about itself
            self._warning = True
            try:
                self.warn(f"a handler raised {error!r}; the run goes on")
            finally:
                self._warning = False
