"""The user interface without --control: the answer on standard output, progress and questions on a terminal.

Standard output receives the answer and nothing else. On a terminal it appears while the model writes it; otherwise the
last message is printed when it is complete, so that `answer=$(amux-agent ...)` is the answer. Progress is printed to
standard error, on a terminal only; warnings, such as that commands are not sandboxed, always. All text of the model is
sanitized for terminals.
"""

import sys
from collections.abc import Sequence

from agent_loop.cli.approvals import InteractionDecision
from agent_loop.cli.stream import EmittedEvent
from agent_mux.assembler import OpenInteraction, Verdict
from agent_mux.cli.interaction_prompts import asks_for_whole, describe_request, parse_answer, prompt_for
from agent_mux.cli.output import Chunk, OutputWriter, Screen
from agent_mux.cli.rendering import Renderer
from agent_mux.cli.streams import TypedLines
from agent_mux.cli.terminal import Palette, is_terminal, one_line, palette_for, size_of, width_of
from agent_mux.events import DebugEvent, MessageStopEvent
from agent_mux.run.interaction import describe
from agent_mux.sdk.interactions import Approve, Choice, Deny, Text

MAX_FAILURE = 2000
"""The most characters of the failure message at the end."""
DECLINED = "the user declined to answer"


def current_screen(*, asks: bool) -> Screen:
    """Describe standard output and standard error. `asks`: the user is asked questions on standard error."""
    return Screen(
        palette=palette_for(sys.stderr, no_color=False),
        width=width_of(sys.stderr),
        out_is_terminal=is_terminal(sys.stdout),
        shared=is_terminal(sys.stdout) and is_terminal(sys.stderr),
        asks=asks,
    )


class TextOutput:
    """Renders events as text for a user."""

    def __init__(self, output: OutputWriter, screen: Screen, *, shows_work: bool) -> None:
        """`shows_work`: print tool calls and other progress to standard error."""
        self._output = output
        self._screen = screen
        self._shows_work = shows_work
        self._renderer = Renderer(screen)
        self._answer = ""

    def show(self, emitted: Sequence[EmittedEvent]) -> None:
        """Render events in their order, and remember the last message as the answer."""
        for event, _ in emitted:
            if isinstance(event, MessageStopEvent) and event.subagent_id is None:
                self._answer = event.text
            self._add(self._renderer.show(event))
            if isinstance(event, DebugEvent) and event.level == "warn" and not self._shows_work:
                self._output.add([Chunk("err", f"amux-agent: warning: {one_line(event.message, MAX_FAILURE)}\n")])

    def finish(self, verdict: Verdict) -> None:
        """Render the end of the run: the answer if it was not streamed, and the failure."""
        if not self._screen.out_is_terminal and self._answer:
            end = "" if self._answer.endswith("\n") else "\n"
            self._output.add([Chunk("out", self._answer + end)])
        self._add(self._renderer.finish())
        if verdict.failure is not None:
            message = one_line(verdict.failure.message, MAX_FAILURE)
            self._output.add([Chunk("err", f"amux-agent: {message} [{verdict.failure.code}]\n")])

    def _add(self, pieces: Sequence[Chunk]) -> None:
        self._output.add(
            piece for piece in pieces if (self._screen.out_is_terminal if piece.stream == "out" else self._shows_work)
        )


class TerminalPrompter:
    """Asks a user on standard error and reads the answers from standard input; both must be terminals."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        self._output = output
        self._palette = palette
        self._typed = TypedLines()

    async def ask(self, interaction: OpenInteraction) -> InteractionDecision:
        """Ask about an approval or a question until the answer is valid. The end of input declines it."""
        pending = describe(interaction, "")
        await self._output.drain()
        self._typed.discard()
        shown = describe_request(pending, self._palette, size_of(sys.stderr))
        await self._show(shown.text)
        while True:
            await self._show(self._palette.bold(prompt_for(pending, is_folded=shown.is_folded)))
            line = await self._typed.next()
            if line is None:
                await self._show("\n")
                return InteractionDecision(granted=False, text=DECLINED)
            if asks_for_whole(pending, line):
                await self._show(describe_request(pending, self._palette, size_of(sys.stderr), whole=True).text)
                continue
            match parse_answer(pending, line):
                case Approve(always):
                    return InteractionDecision(granted=True, always=always)
                case Deny(reason):
                    return InteractionDecision(granted=False, text=reason or "")
                case Text(text):
                    return InteractionDecision(granted=True, text=text)
                case Choice(option):
                    return InteractionDecision(granted=True, text=_option_text(interaction, option))

    async def _show(self, text: str) -> None:
        self._output.add([Chunk("err", text)])
        await self._output.drain()


def _option_text(interaction: OpenInteraction, chosen: str | int) -> str:
    options: tuple[str, ...] = getattr(interaction.asked, "options", ())
    return options[chosen] if isinstance(chosen, int) and chosen < len(options) else str(chosen)
