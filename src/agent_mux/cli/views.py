"""The three ways to watch a run: as a person, as a program, or only for the answer."""

from typing import Protocol

from agent_mux.cli.ending import ending, trouble
from agent_mux.cli.paper import Piece, Screen
from agent_mux.cli.render import Renderer
from agent_mux.cli.terminal import sanitize
from agent_mux.events import BaseEvent, encode_event
from agent_mux.plain_json import to_json
from agent_mux.run.result import RunResult


class View(Protocol):
    """What is written for the events of a run, and for its end."""

    def show(self, event: BaseEvent) -> list[Piece]:
        """For one event."""
        ...

    def end(self, result: RunResult) -> list[Piece]:
        """When it is over."""
        ...

    def fit(self, width: int) -> None:
        """The window has so many columns from now on."""
        ...


class HumanView:
    """The answer on standard output, everything else on standard error."""

    def __init__(self, screen: Screen) -> None:
        self._renderer = Renderer(screen)

    def show(self, event: BaseEvent) -> list[Piece]:
        """What a person wants to know."""
        return self._renderer.show(event)

    def end(self, result: RunResult) -> list[Piece]:
        """A summary."""
        return self._renderer.finish(ending(result))

    def fit(self, width: int) -> None:
        """Lines are cut there."""
        self._renderer.fit(width)


class JsonView:
    """One event per line, then the result."""

    def __init__(self, *, compact: bool) -> None:
        self._accumulated = not compact

    def show(self, event: BaseEvent) -> list[Piece]:
        """The event."""
        return [Piece("out", encode_event(event, accumulated=self._accumulated).decode() + "\n")]

    def end(self, result: RunResult) -> list[Piece]:
        """The result, of type `run_result`."""
        return [Piece("out", to_json(result.to_dict()) + "\n")]

    def fit(self, width: int) -> None:
        """Nothing is cut."""


class ResultView:
    """The result alone, as JSON."""

    def show(self, event: BaseEvent) -> list[Piece]:  # noqa: ARG002  # that is the point
        """Nothing."""
        return []

    def end(self, result: RunResult) -> list[Piece]:
        """The result, of type `run_result`."""
        return [Piece("out", to_json(result.to_dict()) + "\n")]

    def fit(self, width: int) -> None:
        """Nothing is cut."""


class QuietView:
    """Only the final text."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def show(self, event: BaseEvent) -> list[Piece]:  # noqa: ARG002  # that is the point
        """Nothing."""
        return []

    def end(self, result: RunResult) -> list[Piece]:
        """The text of the last turn; and the error, if it failed."""
        screen = self._screen
        text = sanitize(result.text) if screen.out_is_terminal else result.text
        said = [Piece("out", text.removesuffix("\n") + "\n")] if text else []
        return said + Renderer(screen).finish(trouble(result))

    def fit(self, width: int) -> None:
        """The error is cut there."""
        self._screen = self._screen._replace(width=width)
