"""A conversation at a terminal: typed lines are prompts, slash commands or answers.

See docs/spec/run-api.md, section 8.
"""

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

import anyio
import anyio.abc

from agent_mux.api.event_lines import count
from agent_mux.cli.errors import error_report, format_error
from agent_mux.cli.interaction_handlers import (
    DenyingHandler,
    InteractionHandler,
    leave_requests_pending,
    respond,
)
from agent_mux.cli.interaction_prompts import (
    DECLINED,
    INTERACTION_EVENTS,
    asks_for_whole,
    describe_request,
    parse_answer,
    prompt_for,
)
from agent_mux.cli.interactive.editor import Editor, EditorEvent, EditorFooter, EnteredLine, Mailbox, PressedKey
from agent_mux.cli.interactive.slash_commands import PromptText, SlashCommand, find_problem, help_text, parse_line
from agent_mux.cli.interactive.usage import ConversationUsage
from agent_mux.cli.layout import prose_rows
from agent_mux.cli.output import Chunk, FooterArea, OutputWriter
from agent_mux.cli.suspension import suspend
from agent_mux.cli.terminal import Palette, one_line, sanitize, size_of
from agent_mux.cli.views import View
from agent_mux.errors import AgentMuxError, AnyCode
from agent_mux.events import BaseEvent
from agent_mux.run.base import Run
from agent_mux.run.callbacks import CORRECTABLE
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction, Response
from agent_mux.sdk.options import APPROVAL_MODES, RunOptions

DOUBLE_PRESS_WINDOW = 1.0  # seconds within which a second Ctrl-C ends the run
_DELIVERY_NOTES: Mapping[Delivery, str] = {
    "applied": "sent",
    "queued": "queued: it starts a turn after the earlier prompts",
    "merged": "added to the current turn",
}
_HINTS: Mapping[AnyCode, str] = {
    "CAPABILITY_ERROR": "/queue sends the text after the current turn",
    "INVALID_STATE_TRANSITION": "/status shows the state",
    "STDIN_NOT_AVAILABLE": "/exit ends the conversation",
}
_IDLE, _BUSY = "> ", "(working) > "


class ReplHandler(InteractionHandler):
    """Handles one conversation at a terminal."""

    def __init__(self, output: OutputWriter, palette: Palette, *, is_attended: bool = True) -> None:
        """Initialize the handler. If `is_attended` is false, all requests are denied."""
        super().__init__(output, palette)
        self._denier = None if is_attended else DenyingHandler(output, palette)
        self._mailbox: Mailbox[EditorEvent] = Mailbox()
        self._editor = Editor(self._mailbox.put)
        self._usage = ConversationUsage()
        self._waiting: list[str] = []
        """The ids of shown requests that are not asked yet, in order."""
        self._current_question: PendingInteraction | None = None
        self._is_closing = False
        self._is_aborting = False
        self._last_interrupt = -DOUBLE_PRESS_WINDOW
        self._tasks: anyio.abc.TaskGroup | None = None
        output.redirect_to(self._editor.write)
        self._commands: Mapping[str, Callable[[Run, str], Awaitable[None]]] = {
            "exit": self._exit,
            "quit": self._exit,
            "abort": self._abort,
            "interrupt": self._interrupt,
            "pause": lambda run, _: self._pause(run),
            "resume": lambda run, _: self._resume(run),
            "model": self._set_model,
            "mode": self._set_mode,
            "status": self._status,
            "cost": self._cost,
            "session": self._session,
            "queue": self._queue,
            "steer": self._steer,
            "help": self._help,
        }

    # -- the interface of handlers

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Leave requests pending for the person at the terminal."""
        if self._denier is not None:
            return self._denier.with_callbacks(options)
        return leave_requests_pending(options)

    def __enter__(self) -> None:
        self._editor.start()

    def __exit__(self, *_: object) -> None:
        self._editor.stop()

    async def attend(self, run: Run) -> None:
        """Handle typed lines and keys until cancelled."""
        with self._mailbox:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    await self._handle_input(run, await self._mailbox.receive())
                    self._show_state(run)

    async def on_event(self, run: Run, event: BaseEvent) -> None:
        """Count the event and ask the next question."""
        self._usage.add(event)
        self._show_state(run)
        if event.type in INTERACTION_EVENTS:
            self._waiting.append(getattr(event, "interaction_id", ""))
        await self._ask_next(run)

    def footer_for(self, view: View) -> FooterArea:  # noqa: ARG002  # part of the interface
        """Show the footer above the edited line."""
        return EditorFooter(self._editor)

    async def handle_signal(self, run: Run, number: signal.Signals) -> bool:  # noqa: ARG002  # part of the interface
        """Treat SIGINT like a typed Ctrl-C."""
        if number is not signal.SIGINT:
            return False
        self._mailbox.put(PressedKey("interrupt"))
        return True

    async def suspend(self, run: Run) -> None:  # noqa: ARG002  # the editor releases the terminal first
        """Treat SIGTSTP like a typed Ctrl-Z."""
        self._editor.suspend()

    # -- input

    async def _handle_input(self, run: Run, event: EditorEvent) -> None:
        try:
            match event:
                case PressedKey("interrupt"):
                    await self._handle_ctrl_c(run)
                case PressedKey("end", None):
                    await self._exit(run)
                case PressedKey("end", str() as question):
                    await self._answer(run, question, None)
                case PressedKey("suspended"):
                    try:
                        await suspend(run, self.warn)
                    finally:
                        self._editor.resume()
                case PressedKey("gone"):
                    await self._abort(run)
                case EnteredLine(text, question):
                    await self._line(run, text, question)
        except AgentMuxError as error:
            hint = _HINTS.get(error.code, "")
            self._print(
                format_error(error_report(error), self.palette) + (self.palette.dim(f" {hint}") if hint else "")
            )

    async def _line(self, run: Run, text: str, question: str | None) -> None:
        typed = parse_line(text)
        is_answer = question is not None and not isinstance(typed, SlashCommand)
        before = prompt_for(self._current_question) if is_answer and self._current_question is not None else _IDLE
        if text.strip():
            self._print(self.palette.bold(before + sanitize(text)))
        match typed:
            case SlashCommand():
                await self._command(run, typed)
            case _ if question is not None:
                await self._answer(run, question, typed.text if isinstance(typed, PromptText) else "")
            case PromptText(prompt):
                await self._send(run, prompt)

    async def _command(self, run: Run, command: SlashCommand) -> None:
        wrong = find_problem(command)
        if wrong is not None:
            self._note(wrong)
        else:
            await self._commands[command.name](run, command.text)

    # -- prompts

    async def _send(self, run: Run, text: str) -> None:
        self._note_delivery(await run.send(text))

    async def _queue(self, run: Run, text: str) -> None:
        self._note_delivery(await run.queue(text))

    async def _steer(self, run: Run, text: str) -> None:
        self._note_delivery(await run.steer(text))

    def _note_delivery(self, delivery: Delivery) -> None:
        self._note(_DELIVERY_NOTES[delivery])

    # -- questions

    async def _ask_next(self, run: Run) -> None:
        """Ask the next pending question, unless the current one still waits for an answer."""
        pending = {one.id: one for one in run.interaction.pending}
        if self._current_question is not None:
            if self._current_question.id in pending:
                return
            self._forget_question()
            self._note("(no longer needed)")
        while self._waiting:
            self._current_question = pending.get(self._waiting.pop(0))
            if self._current_question is not None:
                is_folded = self._show_request(self._current_question)
                await self.output.drain()
                self._editor.ask(self._current_question.id, prompt_for(self._current_question, is_folded=is_folded))
                return

    def _show_request(self, pending: PendingInteraction, *, whole: bool = False) -> bool:
        """Print a request. Return whether a part of it is left out."""
        shown = describe_request(pending, self.palette, size_of(sys.stderr), whole=whole)
        self._print(shown.text.removesuffix("\n"))
        return shown.is_folded

    async def _answer(self, run: Run, question: str, text: str | None) -> None:
        """Answer or decline (text None) the current question."""
        asked = self._current_question
        if asked is None or asked.id != question:
            self._note("(no longer needed)")
            return
        if text is not None and asks_for_whole(asked, text):
            self._show_request(asked, whole=True)
            return
        response: Response | None = DECLINED if text is None else parse_answer(asked, text)
        if response is None:
            if asked.type == "approval":
                self._note("invalid answer: y allows, n denies (n REASON), a always allows similar ones, v shows all")
            return
        self._forget_question()
        try:
            await respond(run, asked, response)
        except AgentMuxError as error:
            if error.code not in CORRECTABLE:
                raise
            self._note(error.message)
            self._waiting.insert(0, asked.id)
        await self._ask_next(run)

    def _forget_question(self) -> None:
        self._current_question = None
        self._editor.forget_question()

    # -- control

    async def _handle_ctrl_c(self, run: Run) -> None:
        now = time.monotonic()
        is_second, self._last_interrupt = now - self._last_interrupt < DOUBLE_PRESS_WINDOW, now
        if is_second or self._is_aborting:
            await self._abort(run)
        elif run.is_busy:
            await self._interrupt(run)
        else:
            self._editor.clear()
            self._note(
                "no turn is running; Ctrl-D or /exit ends the conversation, Ctrl-C twice within a second aborts the run"
            )

    async def _interrupt(self, run: Run, _: str = "") -> None:
        if not run.is_busy:
            self._note("no turn is running")
            return
        if run.state == "interrupted":
            self._note(
                "the agent was already interrupted and is still stopping; Ctrl-C twice within a second aborts the run"
            )
            return
        if run.state == "paused":
            await self._resume(run)
        await run.interrupt()
        self._note("interrupted; press Ctrl-C again to abort the run")

    async def _set_model(self, run: Run, name: str) -> None:
        await run.set_model(name)
        self._note(f"using {name}, at the latest from the next turn on")

    async def _set_mode(self, run: Run, mode: str) -> None:
        if mode not in APPROVAL_MODES:
            self._note(f"unknown approval mode {mode!r}; use one of {', '.join(APPROVAL_MODES)}")
            return
        delivery = await run.set_approval_mode(mode)
        unchanged = "the run has this approval mode"
        self._note(unchanged if delivery == "unneeded" else f"approval mode {mode}; requests that are open stay open")

    async def _pause(self, run: Run) -> None:
        await run.pause()

    async def _resume(self, run: Run) -> None:
        await run.resume()

    async def _exit(self, run: Run, _: str = "") -> None:
        if self._is_closing:
            self._note("not waiting any longer")
            run.kill()
            return
        self._is_closing = True
        if run.state == "paused":
            await self._resume(run)
        await run.close()
        waiting = "waiting for the agent to finish; /exit or Ctrl-D again ends the run at once"
        self._note(waiting if run.is_busy else "ending the conversation")

    async def _abort(self, run: Run, _: str = "") -> None:
        if self._is_aborting:
            run.kill()
            return
        self._is_aborting = True
        self._note("aborting the run; press Ctrl-C again to kill it")
        assert self._tasks is not None  # noqa: S101  # commands arrive only while `attend` runs
        self._tasks.start_soon(run.abort)

    # -- information

    async def _status(self, run: Run, _: str) -> None:
        pending = run.interaction.pending
        lines = [
            f"{run.agent}: {', '.join(self._states(run))}",
            f"model: {run.model or 'unknown'}",
            f"session: {run.session_id or 'not known yet'}",
            f"turns: {self._usage.turns}",
            f"waiting for you: {count(len(pending), 'request')}" if pending else "no pending requests",
            *(f"  {one_line(one.description, 200)}" for one in pending),
        ]
        self._list(lines)

    def _states(self, run: Run) -> Iterator[str]:
        yield run.state
        if run.is_busy:
            yield "working"
        elif run.state == "running" and not self._is_closing:
            yield "ready for a prompt"
        if self._is_closing:
            yield "ending"

    async def _cost(self, run: Run, _: str) -> None:  # noqa: ARG002  # part of every command's signature
        self._list([self._usage.spent()])

    async def _session(self, run: Run, _: str) -> None:
        session = run.session_id
        lines = [f"session: {session or 'not known yet'}", f"run: {run.run_id}"]
        if run.journal is not None:
            lines.append(f"journal: {run.journal}")
        if session is not None:
            lines.append(f"resume it later: amux run -i {run.agent} --session {session}")
        self._list(lines)

    async def _help(self, run: Run, _: str) -> None:  # noqa: ARG002  # part of every command's signature
        self._print(help_text(size_of(sys.stderr).columns))

    # -- display

    def _show_state(self, run: Run) -> None:
        self._editor.set_prompt(_BUSY if run.is_busy else _IDLE)

    def _list(self, lines: list[str]) -> None:
        rows = (row for line in lines for row in prose_rows(one_line(line, 1000), sys.stderr, margin=2))
        self._print("\n".join(f"  {row}" for row in rows))

    def _note(self, text: str) -> None:
        rows = prose_rows(one_line(text, 1000), sys.stderr)
        self._print("\n".join(map(self.palette.dim, rows)))

    def _print(self, text: str) -> None:
        self.output.add([Chunk("err", text + "\n")])
