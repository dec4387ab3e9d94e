"""Handlers of a run's approvals and questions: deny them, or ask at the terminal."""

import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from agent_mux.cli.interaction_prompts import (
    DECLINED,
    INTERACTION_EVENTS,
    asks_for_whole,
    describe_request,
    parse_answer,
    prompt_for,
)
from agent_mux.cli.output import Chunk, FooterArea, OutputWriter
from agent_mux.cli.streams import TypedLines
from agent_mux.cli.suspension import suspend
from agent_mux.cli.terminal import Palette, one_line, size_of
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.run.base import Run
from agent_mux.run.callbacks import CORRECTABLE
from agent_mux.sdk.interactions import Defer, Deny, PendingInteraction, Response
from agent_mux.sdk.options import RunOptions

if TYPE_CHECKING:
    from agent_mux.cli.views import View

NO_TERMINAL = "no terminal to ask on"
STALE_ANSWER_CODES = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
"""Error codes of an answer to a request that is no longer pending."""


class InteractionHandler:
    """Answers the requests of a run. This base class only observes; `output` receives messages for the user."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        self.output = output
        self.palette = palette

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Return the options with callbacks of this handler."""
        return options

    def __enter__(self) -> None:
        """Start when the run has started."""

    def __exit__(self, *_: object) -> None:
        """Stop when all output is shown."""

    async def attend(self, run: Run) -> None:
        """Work beside the run until cancelled or finished."""

    async def on_event(self, run: Run, event: BaseEvent) -> None:
        """React to an event that was shown. The next event is shown when this returns."""

    def footer_for(self, view: "View") -> FooterArea:
        """Return where the footer of the view is shown."""
        return view.new_footer()

    async def handle_signal(self, run: Run, number: signal.Signals) -> bool:  # noqa: ARG002  # for overriding methods
        """React to a signal. Return False for the default reaction, which ends the run."""
        return False

    async def suspend(self, run: Run) -> None:
        """Pause the agent and stop this process until the shell continues it, as Ctrl-Z demands."""
        await suspend(run, self.warn)

    def warn(self, text: str) -> None:
        """Print a warning on standard error, also with `--quiet` and `--json`."""
        self.output.add([Chunk("err", f"{self.palette.warning('warning:')} {one_line(text, 1000)}\n")])


class DenyingHandler(InteractionHandler):
    """Denies every request, with a warning for the first one."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        super().__init__(output, palette)
        self._warned = False

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Deny requests, unless the approval mode already decides all of them."""
        if options.approval_mode != "prompt":
            return options
        return replace(options, on_approval_request=self.refuse, on_input_required=self.refuse)

    def refuse(self, pending: PendingInteraction) -> Deny:
        """Deny a request; warn about the first one."""
        if not self._warned:
            self._warned = True
            asked = one_line(pending.description, 200)
            self.warn(f"{NO_TERMINAL}; denying this and similar requests: {asked} (--yolo allows everything)")
        return Deny(NO_TERMINAL)


def leave_requests_pending(options: RunOptions) -> RunOptions:
    """Return the options with callbacks that leave requests to a person, in plan mode also the approval of the plan."""
    if options.approval_mode == "plan":
        options = replace(options, on_approval_request=lambda _: Defer())
    return replace(options, on_input_required=lambda _: Defer())


async def respond(run: Run, pending: PendingInteraction, response: Response) -> None:
    """Answer a request, unless it was withdrawn or the run ended meanwhile."""
    try:
        await run.interaction.respond(pending.id, response)
    except AgentMuxError as error:
        if error.code not in STALE_ANSWER_CODES:
            raise


class TerminalHandler(InteractionHandler):
    """Asks on standard error and reads answers from standard input, both terminals."""

    def __init__(self, output: OutputWriter, palette: Palette) -> None:
        super().__init__(output, palette)
        self._typed = TypedLines()

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Leave requests pending for the person at the terminal."""
        return leave_requests_pending(options)

    async def on_event(self, run: Run, event: BaseEvent) -> None:
        """Ask the person if the event is a request, and answer the agent. No other event is shown meanwhile."""
        if event.type not in INTERACTION_EVENTS:
            return
        wanted = getattr(event, "interaction_id", None)
        for pending in run.interaction.pending:
            if pending.id == wanted:
                await self.output.drain()
                self._typed.discard()
                shown = describe_request(pending, self.palette, size_of(sys.stderr))
                self._write(shown.text)
                while not await self._ask(run, pending, is_folded=shown.is_folded):
                    pass

    async def _ask(self, run: Run, pending: PendingInteraction, *, is_folded: bool) -> bool:
        """Read an answer and send it. Returns False if the agent does not accept it, so that another one is needed."""
        response: Response | None = None
        with anyio.CancelScope() as scope:

            def cancel_if_answered(_: BaseEvent) -> None:
                if all(other.id != pending.id for other in run.interaction.pending):
                    scope.cancel()

            run.on("*", cancel_if_answered)
            try:
                response = await self._question(run, pending, is_folded=is_folded)
            finally:
                run.off("*", cancel_if_answered)
        if response is None:
            self._write("\n" + self.palette.dim("(no longer needed)") + "\n")
            return True
        try:
            await respond(run, pending, response)
        except AgentMuxError as error:
            if error.code not in CORRECTABLE or isinstance(response, Deny):
                raise
            self._write(f"{error.message}\n")
            return False
        return True

    def response_at_end_of_input(self, run: Run) -> Response:  # noqa: ARG002  # for overriding methods
        """Return the response to a request whose question met the end of the input: Ctrl-D, or a closed terminal."""
        return DECLINED

    async def _question(self, run: Run, pending: PendingInteraction, *, is_folded: bool) -> Response:
        while True:
            self._write(self.palette.bold(prompt_for(pending, is_folded=is_folded)))
            await self.output.drain()
            line = await self._typed.next()
            if line is None:
                self._write("\n")
                return self.response_at_end_of_input(run)
            self.output.line_ended()
            if asks_for_whole(pending, line):
                self._write(describe_request(pending, self.palette, size_of(sys.stderr), whole=True).text)
                continue
            response = parse_answer(pending, line)
            if response is not None:
                return response

    def _write(self, text: str) -> None:
        self.output.add([Chunk("err", text)])
