"""Who is with a run on the command line: answers what the agent asks, and may talk to it."""

import signal
from dataclasses import replace

from agent_mux.cli.output import Output
from agent_mux.cli.paper import Piece
from agent_mux.cli.terminal import Palette, one_line
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.options import RunOptions
from agent_mux.run.interaction import Deny, PendingInteraction, Response
from agent_mux.run.interface import Run

NOBODY = "nobody is there to answer"
SETTLED = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
"""What an answer that comes too late is told."""


class Company:
    """Somebody who only watches. `output` is where they are told things; everything else is for those who do more."""

    def __init__(self, output: Output, palette: Palette) -> None:
        self.output = output
        self.palette = palette

    def answers(self, options: RunOptions) -> RunOptions:
        """The options, with what is asked going where it shall."""
        return options

    def __enter__(self) -> None:
        """The run is there."""

    def __exit__(self, *_: object) -> None:
        """Everything was shown."""

    async def keep(self, run: Run) -> None:
        """Be with the run until cancelled, or as long as there is something to do."""

    async def see(self, run: Run, event: BaseEvent) -> None:
        """An event was shown. The next one is shown when this returns."""

    async def heed(self, run: Run, number: signal.Signals) -> bool:  # noqa: ARG002  # of whoever overrides it
        """A signal came. False: do what is done about signals, which is to end the run."""
        return False

    def warn(self, text: str) -> None:
        """A line on standard error, also where nothing else is shown there."""
        self.output.add([Piece("err", f"{self.palette.warning('warning:')} {one_line(text, 1000)}\n")])


class Unattended(Company):
    """Nobody: what is asked is denied, with a warning the first time."""

    def __init__(self, output: Output, palette: Palette) -> None:
        super().__init__(output, palette)
        self._warned = False

    def answers(self, options: RunOptions) -> RunOptions:
        """Denied, unless everything is allowed or denied anyway."""
        if options.approval_mode != "prompt":
            return options
        return replace(options, on_approval_request=self.refuse, on_input_required=self.refuse)

    def refuse(self, pending: PendingInteraction) -> Deny:
        """Say so once."""
        if not self._warned:
            self._warned = True
            asked = one_line(pending.description, 200)
            self.warn(f"{NOBODY}, so this and the like is denied: {asked} (--yolo allows everything)")
        return Deny(NOBODY)


async def respond(run: Run, pending: PendingInteraction, response: Response) -> None:
    """Answer, unless the agent withdrew what it asked, or ended, while a person was typing."""
    try:
        await run.interaction.respond(pending.id, response)
    except AgentMuxError as error:
        if error.code not in SETTLED:
            raise
