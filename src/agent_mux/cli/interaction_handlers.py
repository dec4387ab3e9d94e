"""Handlers."""

import signal
from dataclasses import replace

import anyio

from agent_mux.cli.interaction_prompts import DECLINED, INTERACTION_EVENTS, describe_request, parse_answer, prompt_for
from agent_mux.cli.output import Chunk, OutputWriter
from agent_mux.cli.streams import TypedLines
from agent_mux.cli.terminal import Palette, one_line
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.options import RunOptions
from agent_mux.run.interaction import Deny, PendingInteraction, Response
from agent_mux.run.interface import Run

NO_TERMINAL = "nobody is there to answer"
STALE_ANSWER_CODES = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
"""What an answer that comes too late is told."""


class InteractionHandler:
    """Somebody who only watches. `output` is where they are told things; everything else is for those who do more."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        self.output = output
        self.palette = palette

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """The options, with what is asked going where it shall."""
        return options

    def __enter__(self) -> None:
        """The run is there."""

    def __exit__(self, *_: object) -> None:
        """Everything was shown."""

    async def attend(self, run: Run) -> None:
        """Be with the run until cancelled, or as long as there is something to do."""

    async def on_event(self, run: Run, event: BaseEvent) -> None:
        """An event was shown. The next one is shown when this returns."""

    async def handle_signal(self, run: Run, number: signal.Signals) -> bool:  # noqa: ARG002  # of whoever overrides it
        """A signal came. False: do what is done about signals, which is to end the run."""
        return False

    def warn(self, text: str) -> None:
        """A line on standard error, also where nothing else is shown there."""
        self.output.add([Chunk("err", f"{self.palette.warning('warning:')} {one_line(text, 1000)}\n")])


class DenyingHandler(InteractionHandler):
    """Nobody: what is asked is denied, with a warning the first time."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        super().__init__(output, palette)
        self._warned = False

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Denied, unless everything is allowed or denied anyway."""
        if options.approval_mode != "prompt":
            return options
        return replace(options, on_approval_request=self.refuse, on_input_required=self.refuse)

    def refuse(self, pending: PendingInteraction) -> Deny:
        """Say so once."""
        if not self._warned:
            self._warned = True
            asked = one_line(pending.description, 200)
            self.warn(f"{NO_TERMINAL}, so this and the like is denied: {asked} (--yolo allows everything)")
        return Deny(NO_TERMINAL)


async def respond(run: Run, pending: PendingInteraction, response: Response) -> None:
    """Answer, unless the agent withdrew what it asked, or ended, while a person was typing."""
    try:
        await run.interaction.respond(pending.id, response)
    except AgentMuxError as error:
        if error.code not in STALE_ANSWER_CODES:
            raise


class TerminalHandler(InteractionHandler):
    """Asks on standard error and reads answers from standard input, both of them terminals."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        super().__init__(output, palette)
        self._typed = TypedLines()

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """What is asked stays pending for the person."""
        return replace(options, on_input_required=lambda _: None)

    async def on_event(self, run: Run, event: BaseEvent) -> None:
        """If the event asks something, ask the person, and answer the agent. Nothing else is shown meanwhile."""
        if event.type not in INTERACTION_EVENTS:
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
            self._write("\n" + self.palette.dim("(no longer needed)") + "\n")
        else:
            await respond(run, pending, response)

    async def _question(self, pending: PendingInteraction) -> Response:
        await self.output.drain()
        self._typed.discard()
        self._write(describe_request(pending, self.palette))
        while True:
            self._write(self.palette.bold(prompt_for(pending)))
            await self.output.drain()
            line = await self._typed.next()
            if line is None:
                self._write("\n")
                return DECLINED
            response = parse_answer(pending, line)
            if response is not None:
                return response

    def _write(self, text: str) -> None:
        self.output.add([Chunk("err", text)])
