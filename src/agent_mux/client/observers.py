"""Who is told of the runs of a client. Nothing that they raise harms a run."""

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from agent_mux._util.logs import LOGGER

_Run = TypeVar("_Run")


class Observers(Generic[_Run]):
    """Each is called with a run, and returns what is to be called at its end."""

    def __init__(self) -> None:
        self._observers: list[Callable[[_Run], Callable[[], None]]] = []

    def add(self, observer: Callable[[_Run], Callable[[], None]]) -> Callable[[], None]:
        """Tell one more, of the runs from now on. Returns the function that stops it."""
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    def tell(self, run: _Run, complain: Callable[[str], None]) -> list[Callable[[], None]]:
        """A run begins. Gives what is to be called at its end; `complain` is told of an observer that raises."""
        endings = []
        for observe in self._observers:
            try:
                endings.append(observe(run))
            except Exception as error:  # noqa: BLE001  # an observer of the consumer's may raise anything
                complain(f"an observer raised {error!r}; the run goes on")
        return endings


def tell_of_end(endings: Sequence[Callable[[], None]], run_id: str) -> None:
    """It is over: whatever they raise, other runs go on."""
    for end in endings:
        try:
            end()
        except Exception:
            logging.getLogger(LOGGER).exception("an observer raised at the end of run %s", run_id)
