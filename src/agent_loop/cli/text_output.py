"""The answer for people: on standard output, and nothing else there. What happens meanwhile goes to a terminal alone.

Where standard output is a terminal, the answer appears as it comes; else the last message is printed when it is whole,
so that `answer=$(amux-agent ...)` is the answer. What comes from the model is made harmless for terminals.
"""

import sys
from collections.abc import Sequence

from agent_loop.cli.stream import Told
from agent_mux.assembler import Verdict
from agent_mux.cli.output import Chunk, OutputWriter, Screen
from agent_mux.cli.rendering import Renderer
from agent_mux.cli.terminal import is_terminal, one_line, palette_for, width_of
from agent_mux.events import MessageStopEvent

LONGEST = 2000  # characters of the last line


def screen_here(*, asks: bool) -> Screen:
    """What standard output and standard error are. `asks`: a person is asked, and is shown the question there."""
    return Screen(
        palette=palette_for(sys.stderr, no_color=False),
        width=width_of(sys.stderr),
        out_is_terminal=is_terminal(sys.stdout),
        shared=is_terminal(sys.stdout) and is_terminal(sys.stderr),
        asks=asks,
    )


class TextOutput:
    """Shows events to a person."""

    def __init__(self, output: OutputWriter, screen: Screen, *, shows_work: bool) -> None:
        """`shows_work`: tool calls and the like are told on standard error."""
        self._output = output
        self._screen = screen
        self._shows_work = shows_work
        self._renderer = Renderer(screen)
        self._answer = ""

    def show(self, told: Sequence[Told]) -> None:
        """Some events."""
        for event, _ in told:
            if isinstance(event, MessageStopEvent):
                self._answer = event.text
            self._add(self._renderer.show(event))

    def finish(self, verdict: Verdict) -> None:
        """The run is over."""
        if not self._screen.out_is_terminal and self._answer:
            end = "" if self._answer.endswith("\n") else "\n"
            self._output.add([Chunk("out", self._answer + end)])
        self._add(self._renderer.finish())
        if verdict.failure is not None:
            message = one_line(verdict.failure.message, LONGEST)
            self._output.add([Chunk("err", f"amux-agent: {message} [{verdict.failure.code}]\n")])

    def _add(self, pieces: Sequence[Chunk]) -> None:
        self._output.add(
            piece for piece in pieces if (self._screen.out_is_terminal if piece.stream == "out" else self._shows_work)
        )
