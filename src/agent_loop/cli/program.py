"""The program: reads its input, runs the conversation, prints events or text, and returns the exit reason."""

import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio

from agent_loop.cli import protocol
from agent_loop.cli.approvals import Asker
from agent_loop.cli.arguments import Arguments
from agent_loop.cli.assembly import AssembledAgent, ProgramEnvironment, assemble, create_stream
from agent_loop.cli.control import ControlHandler
from agent_loop.cli.errors import OutputError
from agent_loop.cli.inputs import read_lines, read_prompt, settings_of, with_flags
from agent_loop.cli.outcomes import failure_of
from agent_loop.cli.protocol import ControlCommand, InvalidCommandError, StartCommand
from agent_loop.cli.signals import SignalHandler
from agent_loop.cli.stream import EmittedEvent, Sink
from agent_loop.cli.suspension import suspend
from agent_loop.cli.terminal import TerminalPrompter, TextOutput, current_screen
from agent_loop.cli.turns import TurnRunner
from agent_loop.sessions.ids import new_id
from agent_loop.suspension import active
from agent_mux.assembler import Ending
from agent_mux.cli.output import Chunk, OutputWriter
from agent_mux.cli.terminal import is_terminal
from agent_mux.sdk import facts

OUTPUT_TIMEOUT = 1.0
"""The longest time in seconds for which Ctrl-Z waits until output is printed."""


def run_program(arguments: Arguments) -> str:
    """Execute a command line and return the exit reason of the run.

    With --control the exit reason is "completed", because the events contain the outcome. Raises `UsageError` and
    `AgentLoopError` if the run cannot start, and `BrokenPipeError` if the reader of standard output is gone, and
    `OutputError` if it cannot be written.
    """
    return anyio.run(_run, arguments)


async def _run(arguments: Arguments) -> str:
    return await Program(arguments).run()  # constructed here, because its output needs an event loop


class Program:
    """One execution of the program. Signals stop it by its methods `interrupt`, `close` and `cancel`."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._output = OutputWriter("utf-8")
        self._turns: TurnRunner | None = None
        self._assembled: AssembledAgent | None = None
        self._scope = anyio.CancelScope()

    async def run(self) -> str:
        """Run to the end and return the exit reason. See `run_program`."""
        try:
            return await self._run()
        finally:
            if self._assembled is not None:  # blocks: nothing else runs any more
                self._assembled.close()

    async def _run(self) -> str:
        exit_reason = "interrupted"
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._output.run)
                tasks.start_soon(self._cancel_without_reader)
                tasks.start_soon(SignalHandler(time.monotonic).run, self)
                exit_reason = await (self._run_controlled() if self._arguments.control else self._run_prompt())
                await self._output.drain()
                tasks.cancel_scope.cancel()
        error = self._output.error
        if error is not None:
            raise error if isinstance(error, BrokenPipeError) else OutputError(error)
        return exit_reason

    # -- stopping

    def interrupt(self) -> bool:
        """Stop the running turn. Return False if no turn runs."""
        if self._turns is None:
            return False
        return self._turns.interrupt()

    def close(self) -> None:
        """Accept no more prompts; before the conversation has started, stop the program."""
        if self._turns is None:
            self._scope.cancel()
        else:
            self._turns.close()

    def cancel(self) -> None:
        """Stop the running turn and the program."""
        if self._turns is None:
            self._scope.cancel()
        else:
            self._turns.cancel()

    async def suspend(self) -> None:
        """Stop this process with everything that it runs, until the shell continues it (`fg`, `bg`)."""
        with anyio.move_on_after(OUTPUT_TIMEOUT):
            await self._output.drain()
        await suspend([*active(), *([] if self._assembled is None else [self._assembled.background])])

    async def _cancel_without_reader(self) -> None:
        """Stop the program when the reader of standard output is gone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._output.watch, 1)
            await self._output.broken.wait()
            self._scope.cancel()

    # -- with --control

    async def _run_controlled(self) -> str:
        lines = read_lines(0)
        start, first = await self._read_start(lines)
        environment = self._environment(self._print_events)
        try:
            assembled = await assemble(start, environment)
        except Exception as error:  # noqa: BLE001  # the outermost level: errors become events with a sentence
            stream = create_stream(start, environment, None)
            stream.emit(facts.TurnFailed(failure_of(error)))
            stream.end(Ending(code=0))
            return "completed"
        turns = self._create_turns(assembled)
        control = ControlHandler(turns, assembled.approvals, assembled.stream, self._print_line, assembled.use_model)
        if first is not None:
            control.handle(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(control.run, lines)
            async with assembled.agent:  # its MCP servers stay connected for all turns
                ending = await turns.run()
            assembled.stream.end(ending)
            tasks.cancel_scope.cancel()
        return "completed"

    async def _read_start(self, lines: AsyncIterator[bytes | None]) -> tuple[StartCommand, ControlCommand | None]:
        """Return the settings of the run, and the first command if it is not `start`."""
        async for line in lines:
            try:
                command = protocol.parse_command(line)
            except InvalidCommandError as error:
                self._print_line(protocol.refused(error.command_id, "VALIDATION_ERROR", str(error)))
                continue
            if isinstance(command, StartCommand):
                return with_flags(command, self._arguments), None
            return with_flags(StartCommand(), self._arguments), command
        return with_flags(StartCommand(), self._arguments), None

    # -- with one prompt

    async def _run_prompt(self) -> str:
        prompt = await read_prompt(self._arguments)
        asker = self._asker()
        start = settings_of(self._arguments)
        text: TextOutput | None = None
        if not self._arguments.as_json:
            screen = current_screen(asks=asker is not None)
            text = TextOutput(self._output, screen, shows_work=is_terminal(sys.stderr))
        sink = self._print_events if text is None else text.show
        assembled = await assemble(start, self._environment(sink, asker, can_ask=asker is not None))
        turns = self._create_turns(assembled)
        turns.prompt(prompt)
        turns.close()
        if asker is None:
            assembled.approvals.stop_asking()
        async with assembled.agent:
            ending = await turns.run()
        verdict = assembled.stream.end(ending)
        if text is not None:
            text.finish(verdict)
        return verdict.exit_reason

    def _asker(self) -> Asker | None:
        """Return a function that asks the user, None if the program does not run at a terminal."""
        is_interactive = self._arguments.prompt is not None and is_terminal(sys.stdin) and is_terminal(sys.stderr)
        if not is_interactive or self._arguments.as_json:
            return None
        return TerminalPrompter(self._output, current_screen(asks=True).palette).ask

    # -- internals

    def _create_turns(self, assembled: AssembledAgent) -> TurnRunner:
        self._assembled = assembled
        self._turns = TurnRunner(
            assembled.agent, assembled.stream, budget=assembled.budget, wait_for_reader=self._output.wait_for_capacity
        )
        return self._turns

    def _environment(self, sink: Sink, asker: Asker | None = None, *, can_ask: bool = True) -> ProgramEnvironment:
        return ProgramEnvironment(
            environ=os.environ,
            directory=Path.cwd(),
            run_id=new_id(),
            now=lambda: time.time_ns() // 1_000_000,
            sink=sink,
            asker=asker,
            can_ask=can_ask,
            base_url=self._arguments.base_url,
        )

    def _print_events(self, emitted: Sequence[EmittedEvent]) -> None:
        for each in emitted:
            self._print_line(protocol.event_line(each))

    def _print_line(self, line: str) -> None:
        self._output.add([Chunk("out", line)])
