"""The person at the terminal: asked for permission and for answers, while nothing else is shown."""

from dataclasses import replace

import anyio

from agent_mux.cli.company import Company, respond
from agent_mux.cli.output import Output
from agent_mux.cli.paper import Piece
from agent_mux.cli.questions import ASKS, DECLINED, prompt_of, read_answer, told
from agent_mux.cli.standard_input import TypedLines
from agent_mux.cli.terminal import Palette
from agent_mux.events import BaseEvent
from agent_mux.options import RunOptions
from agent_mux.run.interaction import PendingInteraction, Response
from agent_mux.run.interface import Run


class Person(Company):
    """Asks on standard error and reads answers from standard input, both of them terminals."""

    def __init__(self, output: Output, palette: Palette) -> None:
        super().__init__(output, palette)
        self._typed = TypedLines()

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
        self._typed.forget()
        self._say(told(pending, self.palette))
        while True:
            self._say(self.palette.bold(prompt_of(pending)))
            await self.output.drain()
            line = await self._typed.next()
            if line is None:
                self._say("\n")
                return DECLINED
            response = read_answer(pending, line)
            if response is not None:
                return response

    def _say(self, text: str) -> None:
        self.output.add([Piece("err", text)])
