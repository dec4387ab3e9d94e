"""The program itself: what comes in, the conversation, what goes out, and the exit code.

Source: the agent protocol, "The way of a run", "End of input, signals, exit codes".
"""

import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import msgspec
from ulid import ULID

from agent_loop.cli import json_output
from agent_loop.cli.approvals import Asker
from agent_loop.cli.arguments import Arguments
from agent_loop.cli.assembly import Assembled, Surroundings, assemble, stream_of
from agent_loop.cli.commands import Command, NoCommand, Start, read_command
from agent_loop.cli.control import Control
from agent_loop.cli.conversation import Conversation
from agent_loop.cli.fault import Fault
from agent_loop.cli.faults import failure_of
from agent_loop.cli.inputs import read_image, read_schema, read_text
from agent_loop.cli.lines import lines_from, read_all
from agent_loop.cli.main import BROKEN_PIPE, FAILED, INTERRUPTED, abandon_output
from agent_loop.cli.person import Person
from agent_loop.cli.signals import Signals
from agent_loop.cli.stream import Sink, Told
from agent_loop.cli.text_output import TextOutput, screen_here
from agent_loop.messages import Shown, Text, UserMessage
from agent_mux import facts
from agent_mux.assembler import Ending, Verdict
from agent_mux.cli.output import Chunk, OutputWriter
from agent_mux.cli.terminal import is_terminal

_EXIT_CODES = {"completed": 0, "aborted": INTERRUPTED, "interrupted": INTERRUPTED}
"""For people."""


def run_program(arguments: Arguments) -> int:
    """Do what the command line asks for; the exit code. Raises for what cannot be begun."""
    return anyio.run(_live, arguments)


async def _live(arguments: Arguments) -> int:
    return await Program(arguments).run()


class Program:
    """One life of the program."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._output = OutputWriter("utf-8")
        self._conversation: Conversation | None = None
        self._scope = anyio.CancelScope()

    async def run(self) -> int:
        """All of it; the exit code."""
        code = INTERRUPTED
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._output.run)
                tasks.start_soon(self._leave_when_nobody_reads)
                tasks.start_soon(Signals(time.monotonic).watch, self)
                code = await (self._controlled() if self._arguments.control else self._for_people())
                await self._output.drain()
                tasks.cancel_scope.cancel()
        if self._output.broken.is_set():
            abandon_output()
            return BROKEN_PIPE
        return code

    # -- stopping; what signals do

    def interrupt(self) -> bool:
        """End the turn that runs."""
        if self._conversation is None:
            return False
        return self._conversation.interrupt()

    def close(self) -> None:
        """Take no more prompts."""
        if self._conversation is None:
            self._scope.cancel()
        else:
            self._conversation.close()

    def cancel(self) -> None:
        """End everything."""
        if self._conversation is None:
            self._scope.cancel()
        else:
            self._conversation.cancel()

    async def _leave_when_nobody_reads(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._output.watch, 1)
            await self._output.broken.wait()
            self._scope.cancel()

    # -- for programs

    async def _controlled(self) -> int:
        lines = lines_from(0)
        start, first = await self._start(lines)
        here = self._surroundings(self._show_events)
        try:
            assembled = await assemble(start, here)
        except Exception as error:  # noqa: BLE001  # the edge: told as events, with a sentence
            stream = stream_of(start, here, None)
            stream.tell(facts.TurnFailed(failure_of(error)))
            stream.end(Ending(code=0))
            return 0
        conversation = self._converse(assembled)
        control = Control(conversation, assembled.approvals, assembled.stream, self._say)
        if first is not None:
            control.carry_out(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(control.listen, lines)
            assembled.stream.end(await conversation.hold())
            tasks.cancel_scope.cancel()
        return 0

    async def _start(self, lines: AsyncIterator[bytes | None]) -> tuple[Start, Command | None]:
        """The settings, and the command that came in their place."""
        async for line in lines:
            try:
                command = read_command(line)
            except NoCommand as error:
                self._say(json_output.refused(error.command_id, "VALIDATION_ERROR", str(error)))
                continue
            return (command, None) if isinstance(command, Start) else (Start(), command)
        return Start(), None

    # -- for people

    async def _for_people(self) -> int:
        prompt = await self._prompt()
        person = self._person()
        start = self._start_of_flags(person)
        text: TextOutput | None = None
        if not self._arguments.as_json:
            screen = screen_here(asks=person is not None)
            text = TextOutput(self._output, screen, shows_work=is_terminal(sys.stderr))
        sink = self._show_events if text is None else text.show
        assembled = await assemble(start, self._surroundings(sink, person))
        conversation = self._converse(assembled)
        conversation.prompt(prompt)
        conversation.close()
        if person is None:
            assembled.approvals.leave()
        verdict = assembled.stream.end(await conversation.hold())
        if text is not None:
            text.finish(verdict)
        return exit_code_of(verdict)

    def _start_of_flags(self, person: Asker | None) -> Start:
        said = dict(self._arguments.flags)
        if self._arguments.system_prompt_file is not None:
            said["system_prompt"] = read_text(self._arguments.system_prompt_file)
        if self._arguments.output_schema_file is not None:
            said["output_schema"] = read_schema(self._arguments.output_schema_file)
        start = Start(**said)
        if person is None and start.approval_mode in {None, "prompt"}:
            return msgspec.structs.replace(start, approval_mode="deny")
        return start

    async def _prompt(self) -> UserMessage:
        text = self._arguments.prompt
        if text is None:
            if is_terminal(sys.stdin):
                raise Fault("there is no prompt; say what is to be done, for example: amux-agent 'list the files'")
            text = (await read_all(0)).decode("utf-8", "replace")
        if not text.strip():
            raise Fault("the prompt is empty; say what is to be done")
        shown: list[Shown] = [*map(read_image, self._arguments.images), Text(text)]
        return UserMessage(content=tuple(shown))

    def _person(self) -> Asker | None:
        """Somebody at the terminal."""
        is_there = self._arguments.prompt is not None and is_terminal(sys.stdin) and is_terminal(sys.stderr)
        if not is_there or self._arguments.as_json:
            return None
        return Person(self._output, screen_here(asks=True).palette).ask

    # -- inside

    def _converse(self, assembled: Assembled) -> Conversation:
        self._conversation = Conversation(
            assembled.agent, assembled.stream, budget=assembled.budget, room=self._output.wait_for_capacity
        )
        return self._conversation

    def _surroundings(self, sink: Sink, asker: Asker | None = None) -> Surroundings:
        return Surroundings(
            environ=os.environ,
            directory=Path.cwd(),
            run_id=str(ULID()),
            now=lambda: time.time_ns() // 1_000_000,
            sink=sink,
            asker=asker,
            base_url=self._arguments.base_url,
        )

    def _show_events(self, told: Sequence[Told]) -> None:
        for one in told:
            self._say(json_output.event_line(one))

    def _say(self, line: str) -> None:
        self._output.add([Chunk("out", line)])


def exit_code_of(verdict: Verdict) -> int:
    """For people: 0 good, 1 the run failed, 130 interrupted."""
    return _EXIT_CODES.get(verdict.exit_reason, FAILED)
