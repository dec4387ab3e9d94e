"""The person at the terminal: asked for permission and for answers, while nothing else is shown."""

import os
import sys
from dataclasses import replace

import anyio

from agent_mux.cli.company import Company, respond
from agent_mux.cli.output import Output
from agent_mux.cli.paper import Piece
from agent_mux.cli.questions import ASKS, DECLINED, prompt_of, read_answer, told
from agent_mux.cli.terminal import Palette
from agent_mux.events import BaseEvent
from agent_mux.options import RunOptions
from agent_mux.run.interaction import PendingInteraction, Response
from agent_mux.run.interface import Run

_READ_SIZE = 4096  # a terminal gives at most a line of this length


class Person(Company):
    """Asks on standard error and reads answers from standard input, both of them terminals."""

    def __init__(self, output: Output, palette: Palette) -> None:
        super().__init__(output, palette)
        self._begun = b""

    def answers(self, options: RunOptions) -> RunOptions:
        """What is asked stays pending for the person."""
        return replace(options, on_input_required=lambda _: None)

    async def see(self, run: Run, event: BaseEvent) -> None:
        """If the event asks something, ask the person, and answer the agent. Nothing else is shown meanwhile."""
        if event.type not in ASKS:
            return
        wanted = getattr(event, "interaction_id", None)
        for pending in run.interaction.pending:
            if pending.id == wanted:
                await self._ask(run, pending)

    async def _ask(self, run: Run, pending: PendingInteraction) -> None:
        response: Response | None = None
        with anyio.CancelScope() as scope:

            def settled(_: BaseEvent) -> None:
                if all(other.id != pending.id for other in run.interaction.pending):
                    scope.cancel()

            run.on("*", settled)
            try:
                response = await self._question(pending)
            finally:
                run.off("*", settled)
        if response is None:
            self._say("\n" + self.palette.dim("(no longer needed)") + "\n")
        else:
            await respond(run, pending, response)

    async def _question(self, pending: PendingInteraction) -> Response:
        await self.output.drain()
        self._begun = b""
        _forget_typed_ahead()
        self._say(told(pending, self.palette))
        while True:
            self._say(self.palette.bold(prompt_of(pending)))
            await self.output.drain()
            line = await self._read_line()
            if line is None:
                self._say("\n")
                return DECLINED
            response = read_answer(pending, line)
            if response is not None:
                return response

    def _say(self, text: str) -> None:
        self.output.add([Piece("err", text)])

    async def _read_line(self) -> str | None:
        """One line; None at the end of the input. Can be cancelled, unlike `input()`."""
        descriptor = sys.stdin.fileno()
        while b"\n" not in self._begun:
            await anyio.wait_readable(descriptor)
            try:
                chunk = os.read(descriptor, _READ_SIZE)
            except OSError:
                return None  # the terminal is gone
            if not chunk:
                return None
            self._begun += chunk
        line, _, self._begun = self._begun.partition(b"\n")
        return line.decode("utf-8", "replace")


def _forget_typed_ahead() -> None:
    """A key pressed before the question was there must not answer it."""
    import termios  # not on every platform

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
