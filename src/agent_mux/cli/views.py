"""The views of a run: for people, as JSON lines, as one JSON result, or the final text only."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from agent_mux.api.event_lines import EventLine, Mark, count, duration, money
from agent_mux.cli.command_output import for_terminal, shown_json
from agent_mux.cli.output import Chunk, FooterArea, Screen
from agent_mux.cli.rendering import Renderer
from agent_mux.cli.terminal import sanitize
from agent_mux.events import BaseEvent, encode_event
from agent_mux.run.interaction import approval_text
from agent_mux.run.result import Denial, RunResult
from agent_mux.sdk.interactions import approval_subject

MAX_NAMED = 3  # denied requests that the summary names
ANSWER_CUT = "the model reached its limit of output tokens"
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
        yield EventLine("warning", f"{count(len(result.denials), 'request')} denied:", name_denials(result.denials))
    if result.stop_reason == "length":
        yield EventLine("warning", "answer cut:", ANSWER_CUT)
    if result.truncated_bytes:
        yield EventLine("warning", "text cut:", name_cut(result.truncated_bytes, result.run_id))
    if result.failed_on:
        yield EventLine("bad", "failed on:", ", ".join(result.failed_on))


def name_cut(truncated_bytes: int, run_id: str) -> str:
    """Return what was cut from the answer, and how to read it, for one line."""
    return f"{truncated_bytes:,} more bytes; `amux runs text {run_id}` prints all"


def name_denials(denials: Sequence[Denial]) -> str:
    """Return what was denied, for one line."""
    return "; ".join([_subject(denial) for denial in denials[:MAX_NAMED]] + ["..."] * (len(denials) > MAX_NAMED))


def _subject(denial: Denial) -> str:
    """Return what was denied: the command or the files, and the action where they do not name it."""
    subject = approval_subject(denial.detail)
    is_input = not subject or subject.startswith("{")  # of a tool, as JSON
    return approval_text(denial.action, denial.detail) if is_input else subject


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
        f"{usage.cached_tokens:,} cached" if usage is not None and usage.cached_tokens else "",
        money(result.cost),
    )
    return ", ".join(figure for figure in figures if figure)


class View(ABC):
    """Formats the events and the result of a run."""

    has_footer = False
    """Whether the view has lines below the output, which change while nothing happens."""

    @abstractmethod
    def show(self, event: BaseEvent) -> list[Chunk]:
        """Format one event; often as no text."""

    @abstractmethod
    def end(self, result: RunResult) -> list[Chunk]:
        """Format the result when the run is over."""

    def end_without_result(self) -> list[Chunk]:
        """Format what is unfinished, when a recording has no outcome."""
        return []

    def set_width(self, width: int) -> None:  # noqa: B027  # for views that cut or wrap lines
        """Set the number of columns. Views that do not cut lines ignore it."""

    def held_back(self) -> list[Chunk]:
        """Return what waited for further events, when no event has arrived for a moment."""
        return []

    def footer(self, agent: str, model: str | None, *, is_busy: bool = True) -> list[str]:  # noqa: ARG002  # for views with a footer
        """Return the lines below the output; `agent` and `model` are those of the run, `is_busy` during a turn."""
        return []

    def new_footer(self) -> FooterArea:
        """Return the area for the footer. Only views with `has_footer` have one."""
        raise NotImplementedError


class DeferredView(View):
    """A view with a footer that is created for its first use, so that its imports do not delay the agent."""

    has_footer = True

    def __init__(self, create: Callable[[int | None], View]) -> None:
        """Initialize with a factory, which receives the width of the terminal if it has changed."""
        self._create = create
        self._width: int | None = None
        self._view: View | None = None

    @property
    def _created(self) -> View:
        if self._view is None:
            self._view = self._create(self._width)
        return self._view

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Return the chunks of one event, from the current view."""
        return self._created.show(event)

    def end(self, result: RunResult) -> list[Chunk]:
        """Return the unfinished lines and the result of the run."""
        return self._created.end(result)

    def end_without_result(self) -> list[Chunk]:
        """Return the unfinished lines, without a result."""
        return self._created.end_without_result()

    def set_width(self, width: int) -> None:
        """Set the number of columns."""
        self._width = width
        if self._view is not None:
            self._view.set_width(width)

    def held_back(self) -> list[Chunk]:
        """Return what waited for further events."""
        return self._created.held_back()

    def footer(self, agent: str, model: str | None, *, is_busy: bool = True) -> list[str]:
        """Return the lines below the output."""
        return self._created.footer(agent, model, is_busy=is_busy)

    def new_footer(self) -> FooterArea:
        """Return the area for the footer."""
        return self._created.new_footer()


class HumanView(View):
    """Prints the answer on standard output, everything else on standard error."""

    def __init__(self, screen: Screen) -> None:
        self._renderer = Renderer(screen)

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Render one event for people."""
        return self._renderer.show(event)

    def end(self, result: RunResult) -> list[Chunk]:
        """Render the summary of the run."""
        return self._renderer.finish(summary_lines(result))

    def end_without_result(self) -> list[Chunk]:
        """Return the end of an unfinished line, if there is one."""
        return self._renderer.finish()

    def set_width(self, width: int) -> None:
        """Set the column at which lines are cut."""
        self._renderer.set_width(width)


class JsonView(View):
    """Prints one event per line, then the result."""

    def __init__(self, *, compact: bool) -> None:
        self._accumulated = not compact

    def show(self, event: BaseEvent) -> list[Chunk]:
        """Encode the event as one line."""
        return [Chunk("out", for_terminal(encode_event(event, accumulated=self._accumulated).decode()) + "\n")]

    def end(self, result: RunResult) -> list[Chunk]:
        """Encode the result, of type `run_result`, as one line."""
        return [Chunk("out", shown_json(result.to_dict()) + "\n")]


class ResultView(View):
    """Prints only the result, as JSON."""

    def show(self, event: BaseEvent) -> list[Chunk]:  # noqa: ARG002  # part of the interface
        """Return nothing: events are not shown."""
        return []

    def end(self, result: RunResult) -> list[Chunk]:
        """Encode the result, of type `run_result`, as one line."""
        return [Chunk("out", shown_json(result.to_dict()) + "\n")]


class QuietView(View):
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
