"""The person at the terminal: asked for permission and for answers. Everything shown is sanitized, and shown whole."""

import os
import sys
from collections.abc import Callable

import anyio

from agent_mux.cli.output import Output
from agent_mux.cli.paper import Piece
from agent_mux.cli.terminal import Palette, one_line, sanitize
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.run.handle import RunHandle
from agent_mux.run.interaction import (
    ApprovalDetail,
    Approve,
    Choice,
    Deny,
    InputDetail,
    PendingInteraction,
    Response,
    Text,
)

_ASKS = frozenset({"approval_request", "input_required"})
_SETTLED = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
_READ_SIZE = 4096  # a terminal gives at most a line of this length


class Person:
    """Asks on standard error and reads answers from standard input, both of them terminals."""

    def __init__(self, output: Output, palette: Palette) -> None:
        self._output = output
        self._palette = palette
        self._begun = b""

    async def see(self, run: RunHandle, event: BaseEvent) -> None:
        """If the event asks something, ask the person, and answer the agent. Nothing else is shown meanwhile."""
        if event.type not in _ASKS:
            return
        wanted = getattr(event, "interaction_id", None)
        for pending in run.interaction.pending:
            if pending.id == wanted:
                await self._ask(run, pending)

    async def _ask(self, run: RunHandle, pending: PendingInteraction) -> None:
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
            self._say("\n" + self._palette.dim("(no longer needed)") + "\n")
        else:
            await _respond(run, pending, response)

    async def _question(self, pending: PendingInteraction) -> Response:
        match pending.detail:
            case ApprovalDetail() as detail:
                return await self._until(_approval, self._describe_approval(detail), "[y]es / [n]o / [a]lways? ")
            case InputDetail() as detail:
                return await self._until(
                    lambda answer: _answer(answer, len(detail.options)), self._describe_question(detail), "> "
                )

    async def _until(self, read: Callable[[str], Response | None], told: str, prompt: str) -> Response:
        await self._output.drain()
        self._begun = b""
        _forget_typed_ahead()
        self._say(told)
        while True:
            self._say(self._palette.bold(prompt))
            await self._output.drain()
            line = await self._read_line()
            if line is None:
                self._say("\n")
                return Deny("nobody wanted to answer")
            response = read(line.strip())
            if response is not None:
                return response

    def _describe_approval(self, detail: ApprovalDetail) -> str:
        head = self._palette.warning(f"permission needed ({detail.risk_level} risk): ") + one_line(detail.action, 500)
        return head + "\n" + _indented(detail.detail)

    def _describe_question(self, detail: InputDetail) -> str:
        numbered = "".join(
            f"  {number}. {one_line(option, 500)}\n" for number, option in enumerate(detail.options, start=1)
        )
        context = _indented(detail.context) if detail.context else ""
        return self._palette.warning("question: ") + sanitize(detail.question) + "\n" + context + numbered

    def _say(self, text: str) -> None:
        self._output.add([Piece("err", text)])

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


async def _respond(run: RunHandle, pending: PendingInteraction, response: Response) -> None:
    try:
        await run.interaction.respond(pending.id, response)
    except AgentMuxError as error:
        if error.code not in _SETTLED:  # the agent withdrew it, or ended, while the person was typing
            raise


def _approval(answer: str) -> Response | None:
    word, _, reason = answer.partition(" ")
    match word.lower():
        case "y" | "yes":
            return Approve()
        case "a" | "always":
            return Approve(always=True)
        case "n" | "no":
            return Deny(reason.strip() or None)
    return None


def _answer(answer: str, options: int) -> Response | None:
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= options:
        return Choice(int(answer) - 1)
    return Text(answer) if answer else None


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in sanitize(text).split("\n") if line)


def _forget_typed_ahead() -> None:
    """A key pressed before the question was there must not answer it."""
    import termios  # not on every platform

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
