"""A conversation as JSON lines: commands on standard input; acknowledgements between the events on standard output."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import anyio.abc

from agent_mux.cli.interaction_handlers import STALE_ANSWER_CODES, DenyingHandler, InteractionHandler, respond
from agent_mux.cli.interactive.usage import ConversationUsage
from agent_mux.cli.output import Chunk, OutputWriter
from agent_mux.cli.streams import read_lines
from agent_mux.cli.terminal import Palette
from agent_mux.errors import AgentMuxError
from agent_mux.events import BaseEvent
from agent_mux.run import commands as wire
from agent_mux.run.base import Run
from agent_mux.sdk.interactions import Defer, Deny, PendingInteraction
from agent_mux.sdk.options import RunOptions

_CommandHandler = Callable[[Run, Any], Awaitable[Mapping[str, Any]]]


def _detail_of(pending: PendingInteraction) -> Any:
    from agent_mux.api.json_forms import form_of  # only for this response: it loads the schemas of all classes

    kind: Any = type(pending.detail)
    return form_of(kind).write(pending.detail)


class JsonlHandler(InteractionHandler):
    """Handles one conversation. The end of standard input closes the run; later requests are denied."""

    def __init__(self, output: OutputWriter, palette: Palette, *, is_attended: bool = True) -> None:
        """Initialize the handler. If `is_attended` is false, all requests are denied."""
        super().__init__(output, palette)
        self._denier = DenyingHandler(output, palette)
        self._is_attended = is_attended
        self._is_closed = False
        self._usage = ConversationUsage()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._handlers: Mapping[type, _CommandHandler] = {
            wire.InterruptCommand: self._interrupt,
            wire.StatusCommand: self._status,
            wire.CloseCommand: self._close,
            wire.AbortCommand: self._abort,
        }

    # -- the interface of handlers

    def with_callbacks(self, options: RunOptions) -> RunOptions:
        """Leave requests pending while the program can answer them."""
        if not self._is_attended:
            return self._denier.with_callbacks(options)
        if options.approval_mode in {"prompt", "plan"}:
            options = replace(options, on_approval_request=self._deny_unattended)
        return replace(options, on_input_required=self._deny_unattended)

    async def on_event(self, run: Run, event: BaseEvent) -> None:  # noqa: ARG002  # part of the interface
        """Count turns, cost and tokens."""
        self._usage.add(event)

    async def attend(self, run: Run) -> None:
        """Execute commands line by line; close the run after the last one."""
        async with anyio.create_task_group() as self._tasks:
            async with aclosing(read_lines(sys.stdin.fileno(), wire.LONGEST_LINE)) as lines:
                async for line in lines:
                    await self._handle_input(run, line)
                    await self.output.wait_for_capacity()
            await self._close_input(run)

    async def _close_input(self, run: Run) -> None:
        """Deny pending requests and close the run: no more input will arrive."""
        self._is_attended = False
        try:
            for pending in run.interaction.pending:
                await respond(run, pending, self._denier.refuse(pending))
            if not self._is_closed:
                await self._close(run, wire.CloseCommand())
        except AgentMuxError as error:
            if error.code not in STALE_ANSWER_CODES:
                self._write_line(wire.command_error(error, "close", None))
                await run.abort()

    def _deny_unattended(self, pending: PendingInteraction) -> Deny | Defer:
        return Defer() if self._is_attended else self._denier.refuse(pending)

    # -- commands

    async def _handle_input(self, run: Run, line: bytes | None) -> None:
        try:
            command = wire.read_command(line)
        except wire.InvalidCommandError as error:
            wrong = AgentMuxError("VALIDATION_ERROR", str(error))
            self._write_line(wire.command_error(wrong, error.command, error.id))
        else:
            if command is not None:
                await self._carry_out(run, command)

    async def _carry_out(self, run: Run, command: wire.AnyCommand) -> None:
        try:
            handle: _CommandHandler = self._handlers.get(type(command), wire.execute_command)
            data = await handle(run, command)
        except AgentMuxError as error:
            self._write_line(wire.command_error(error, wire.command_name(command), command.id))
        else:
            self._write_line(wire.ack(command, **data))

    def _write_line(self, line: str) -> None:
        self.output.add([Chunk("out", line + "\n")])

    async def _interrupt(self, run: Run, _: wire.InterruptCommand) -> Mapping[str, Any]:
        if not run.is_busy:
            raise AgentMuxError("INVALID_STATE_TRANSITION", "no turn is running; send a prompt first")
        await run.interrupt()
        return {}

    async def _status(self, run: Run, _: wire.StatusCommand) -> Mapping[str, Any]:
        known = {"runId": run.run_id, "agent": run.agent, "model": run.model, "sessionId": run.session_id}
        pending = [
            {"interactionId": one.id, "type": one.type, "description": one.description, "detail": _detail_of(one)}
            for one in run.interaction.pending
        ]
        fields = {name: value for name, value in known.items() if value is not None}
        return {**fields, "state": run.state, "busy": run.is_busy, "pending": pending, **self._usage.to_dict()}

    async def _close(self, run: Run, _: wire.CloseCommand) -> Mapping[str, Any]:
        if run.state == "paused":
            await run.resume()  # a stopped process cannot exit
        await run.close()
        self._is_closed = True
        return {}

    async def _abort(self, run: Run, _: wire.AbortCommand) -> Mapping[str, Any]:
        assert self._tasks is not None  # noqa: S101  # commands arrive only while `attend` runs
        self._tasks.start_soon(run.abort)  # acknowledge the command before the run ends
        return {}
