"""The views of a run: for people, as JSON lines, as one JSON result, or the final text only."""

from collections.abc import Iterable
from typing import Protocol

from agent_mux._util.sanitize import to_json
from agent_mux.api.event_lines import EventLine, Mark, count, duration, money
from agent_mux.cli.output import Chunk, Screen
from agent_mux.cli.rendering import Renderer
from agent_mux.cli.terminal import sanitize
from agent_mux.events import BaseEvent, encode_event
from agent_mux.run.result import RunResult

MAX_NAMED = 3  # denied requests that the summary names
_MARK_OF_REASON: dict[str, Mark] = {"completed": "good", "aborted": "warning", "interrupted": "warning"}


def summary_lines(result: RunResult) -> Iterable[EventLine]:
    """Return the last lines of a run: exit reason, figures, recording and error."""
    yield EventLine(
        _MARK_OF_REASON.get(result.exit_reason, "bad"), result.exit_reason.replace("_", " "), _format_figures(result)
    )
    yield from shortcomings(result)
    if result.journal is not None:
        yield EventLine("note", f"journal: {result.journal}", whole=True)
    yield from error_lines(result)


def shortcomings(result: RunResult) -> Iterable[EventLine]:
    """Return a line for each thing that a completed run did not do, whatever the agent reports."""
    if result.denials:
        names = [denial.detail or denial.action for denial in result.denials[:MAX_NAMED]]
        more = ["..."] if len(result.denials) > MAX_NAMED else []
        yield EventLine("warning", f"{count(len(result.denials), 'request')} denied", "; ".join(names + more))
    if result.stop_reason == "length":
        yield EventLine("warning", "answer cut", "the model reached its limit of output tokens")
    if result.failed_on:
        yield EventLine("bad", "failed on", ", ".join(result.failed_on))


def error_lines(result: RunResult) -> Iterable[EventLine]:
    """Return the error line of a run that did not complete."""
    if result.error is not None:
        yield EventLine("error", result.error.message, f"[{result.error.code}] ({result.agent})", whole=True)


def _format_figures(result: RunResult) -> str:
    usage = result.token_usage
    figures = (
        count(result.turn_count, "turn"),
        duration(result.duration_ms),
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out" if usage is not None else "",
        money(result.cost),
    )
    return ", ".join(figure for figure in figures if figure)


class View(Protocol):
    """Formats the events and the result of a run."""

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Format one event; often as no text."""
        ...

    def end(self, result: RunResult) -> list[Chunk]:
        """Format the result when the run is over."""
        ...

    def set_width(self, width: int) -> None:
        """Set the number of columns."""
        ...


class HumanView:
    """Prints the answer on standard output, everything else on standard error."""

    def __init__(self, screen: Screen) -> None:
        self._renderer = Renderer(screen)

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Render one event for people."""
        return self._renderer.show(event)

    def end(self, result: RunResult) -> list[Chunk]:
        """Render the summary of the run."""
        return self._renderer.finish(summary_lines(result))

    def set_width(self, width: int) -> None:
        """Set the column at which lines are cut."""
        self._renderer.set_width(width)


class JsonView:
    """Prints one event per line, then the result."""

    def __init__(self, *, compact: bool) -> None:
        self._accumulated = not compact

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Encode the event as one line."""
        return [Chunk("out", encode_event(event, accumulated=self._accumulated).decode() + "\n")]

    def end(self, result: RunResult) -> list[Chunk]:
        """Encode the result, of type `run_result`, as one line."""
        return [Chunk("out", to_json(result.to_dict()) + "\n")]

    def set_width(self, width: int) -> None:
        """Ignore the width: lines are not cut."""


class ResultView:
    """Prints only the result, as JSON."""

    def show(self, event: BaseEvent) -> list[Chunk]:  # noqa: ARG002  # part of the interface
        """Return nothing: events are not shown."""
        return []

    def end(self, result: RunResult) -> list[Chunk]:
        """Encode the result, of type `run_result`, as one line."""
        return [Chunk("out", to_json(result.to_dict()) + "\n")]

    def set_width(self, width: int) -> None:
        """Ignore the width: lines are not cut."""


class QuietView:
    """Prints only the final text."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def show(self, event: BaseEvent) -> list[Chunk]:  # noqa: ARG002  # part of the interface
        """Return nothing: events are not shown."""
        return []

    def end(self, result: RunResult) -> list[Chunk]:
        """Render the text of the last turn, what the run did not do, and the error of a failed run."""
        screen = self._screen
        text = sanitize(result.text) if screen.out_is_terminal else result.text
        chunks = [Chunk("out", text.removesuffix("\n") + "\n")] if text else []
        return chunks + Renderer(screen).finish([*shortcomings(result), *error_lines(result)])

    def set_width(self, width: int) -> None:
        """Set the column at which the error is cut."""
        self._screen = self._screen._replace(width=width)
