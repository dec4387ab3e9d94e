"""What the local and the remote client share: defaults for their runs, and observers of their runs."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

from agent_mux._util.logs import LOGGER
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.handlers import WrongReturnError, call_handler, check_handler, shown
from agent_mux.sdk.option_fields import LocalDefaults, RemoteDefaults
from agent_mux.sdk.options import RunOptions, validate_options
from agent_mux.sdk.plain_options import typed_options

REMOTE_DEFAULTS = tuple(RemoteDefaults.__annotations__)
"""Fields of `RunOptions` that `RemoteMux` accepts as defaults."""
LOCAL_DEFAULTS = tuple(LocalDefaults.__annotations__)
"""Fields of `RunOptions` that `AgentMux` accepts as defaults. Only local runs choose where their recording is."""

_Run = TypeVar("_Run")


def validate_defaults(
    defaults: Mapping[str, Any], known: Collection[str], arguments: Collection[str] = ()
) -> dict[str, Any]:
    """Return the defaults that are not None. `arguments`: the other arguments of the client, for suggestions.

    Raises:
        ValidationError: A name that is not in `known`, or a value that is out of range.
    """
    unknown = [_unknown_default(name, value, known, arguments) for name, value in defaults.items() if name not in known]
    if unknown:
        raise ValidationError(unknown)
    given = typed_options({name: value for name, value in defaults.items() if value is not None})
    validate_options(RunOptions(agent="-", prompt="-", **given))
    return given


def _unknown_default(name: str, value: Any, known: Collection[str], arguments: Collection[str]) -> FieldError:
    if name in RunOptions.__dataclass_fields__:
        return FieldError(name, value, f"not as a default: pass {name} to run(); defaults: {', '.join(known)}")
    meant = did_you_mean(name, (*known, *arguments), ", ".join(known))
    return FieldError(name, value, f"an argument of the client, or a default for its runs; {meant}")


class Observers(Generic[_Run]):
    """The observers of a client's runs.

    An observer is called with each new run and returns a function that is called when that run has ended. An exception
    in either of them does not affect the run.
    """

    def __init__(self) -> None:
        self._observers: list[Callable[[_Run], Callable[[], None]]] = []

    def add(self, observer: Callable[[_Run], Callable[[], None]]) -> Callable[[], None]:
        """Call `observer` with each run that starts from now on. Return the function that removes it."""
        self._observers.append(check_handler(observer, "an observer of on_run"))

        def remove() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return remove

    def notify_start(self, run: _Run, warn: Callable[[str], None]) -> list[Callable[[], None]]:
        """Call every observer with a run that starts. Return the functions to call when the run has ended.

        `warn` is called with a message for each observer that raises, or returns no function.
        """
        on_end = []
        for observe in self._observers:
            try:
                at_end: Any = call_handler(observe, run)
            except Exception as error:  # noqa: BLE001  # an observer of the consumer's may raise anything
                is_value = isinstance(error, WrongReturnError)
                warn(f"an observer {f'failed: {error}' if is_value else f'raised {error!r}'}; the run continues")
                continue
            if callable(at_end):
                on_end.append(at_end)
                continue
            warn(f"an observer returned {shown(at_end)}; return a function to call when the run has ended")
        return on_end


def notify_end(on_end: Sequence[Callable[[], None]], run_id: str) -> None:
    """Call the functions that the observers of an ended run returned. Log the exceptions that they raise."""
    for callback in on_end:
        try:
            call_handler(callback)
        except Exception:
            logging.getLogger(LOGGER).exception("an observer raised at the end of run %s", run_id)
