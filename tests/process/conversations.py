"""A conversational scripted agent, and clients that converse with it at a terminal or over pipes."""

import json
import os
import re
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.process.installed_command import PATIENCE, Installed
from tests.pseudo_terminal import PseudoTerminal

from agent_mux import validate
from agent_mux.process.marker import processes_of
from agent_mux.run.commands import RESPONSE_TYPES

CHAT_AGENT = """
def read_next(key):
    while key not in (line := read() or {key: None}): waiting.append(line)
    return line[key]
def answer(prompt):
    word, _, rest = prompt.partition(' ')
    if word == 'ask':
        emit(ask=rest)
        emit(text='it was ' + read_next('answer'))
    elif word == 'question':
        emit(question=rest)
        emit(text='so ' + read_next('answer'))
    elif word == 'work':
        emit(text='working')
        read_next('interrupt')
        emit(over=True); emit(stopped=True)
        return
    elif word == 'begin':
        emit(text=rest)
        open(os.environ['GO']).read()
        emit(text=' and the end')
    elif word == 'prepare':
        open(os.environ['GO']).read()
        emit(ask=rest)
        emit(text='it was ' + read_next('answer'))
    elif word == 'cost':
        emit(used=[1200, 34]); emit(cost=0.5); emit(text='spent')
    elif word == 'flood':
        for number in range(5000): emit(text='line %d of a flood\\n' % number)
        open(rest, 'w').close()
    elif word == 'die':
        sys.exit(7)
    else:
        emit(text='echo ' + prompt)
    emit(over=True)
    emit(done=True)
waiting = []
emit(session='S')
while (line := waiting.pop(0) if waiting else read()):
    if 'send' in line: answer(line['send'])
    if 'prompt' in line: answer('first')
"""
"""Answers each prompt according to its first word and exits at the end of input."""


SPINNER = [chr(number) for number in range(0x2801, 0x2900)]
FOOTER = re.compile(rf"[{SPINNER[0]}-{SPINNER[-1]}] .*|  (\d+ s|[\d:]+)( · .*)?")
"""Lines of the footer: what runs now, and what the conversation has used."""


class ReplTerminal(PseudoTerminal):
    """The scripted agent at a terminal."""

    @property
    def lines(self) -> list[str]:
        """The non-empty lines on the screen without the footer."""
        return [line for line in self.all_lines if not FOOTER.fullmatch(line)]

    @property
    def all_lines(self) -> list[str]:
        """The non-empty lines on the screen."""
        return super().lines

    def wait_for_footer(self) -> None:
        """Wait for a footer that shows what runs now."""
        self._read_until(lambda: any(line[0] in SPINNER for line in self.all_lines), "a footer with what runs now")

    def wait_until_ready(self) -> None:
        """Wait until the session has started and the prompt is displayed."""
        self.wait_for("scripted, session S", ">")


def start_repl(installed: Installed, *arguments: object, body: str = CHAT_AGENT, **extra: Any) -> ReplTerminal:
    """Start `amux run -i scripted` at a terminal."""
    command = installed.command(["run", "-i", "scripted", "--no-color", *arguments])
    return ReplTerminal(command, installed.environment(body, extra), installed.home)


def make_go_pipe(installed: Installed) -> str:
    """Create the named pipe that the agent waits for (variable GO) and return its path."""
    path = installed.home / "go"
    os.mkfifo(path)
    return str(path)


def start_jsonl(installed: Installed, *arguments: object, body: str = CHAT_AGENT, **extra: str) -> "JsonlClient":
    """Start `amux run -i scripted --json` with pipes."""
    command = installed.command(["run", "-i", "scripted", "--json", "--compact", *arguments])
    return JsonlClient(command, installed.environment(body, extra), installed.home)


class JsonlClient:
    """A program that drives `amux run -i --json`: it sends lines and reads lines."""

    def __init__(
        self, command: list[str], environment: Mapping[str, str], cwd: Path, *, patience: float = PATIENCE
    ) -> None:
        self._patience = patience
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            bufsize=0,
        )
        self.lines: list[dict[str, Any]] = []
        self._seen = 0
        self._partial = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def send(self, line: str | None = None, **command: Any) -> None:
        """Send a line, or a command as JSON."""
        assert self.process.stdin is not None
        self.process.stdin.write((line if line is not None else json.dumps(command)).encode() + b"\n")

    def expect(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Wait for a line of this type with these fields, after the previously expected line."""
        while True:
            while self._seen < len(self.lines):
                line = self.lines[self._seen]
                self._seen += 1
                if line["type"] == type_ and fields.items() <= line.items():
                    return line
            assert self._read(), f"{type_} {fields} did not arrive: {self.lines}"

    def close_input(self) -> None:
        """Close standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait_for_exit(self, code: int) -> dict[str, Any]:
        """Wait for this exit code, check that the events conform, and return the last line, the result."""
        while self._read():
            pass
        assert self.process.wait(self._patience) == code, self.lines
        *lines, result = self.lines
        assert result["type"] == "run_result"
        assert validate([line for line in lines if line["type"] not in RESPONSE_TYPES]) == []
        assert processes_of(result["runId"]) == []
        return result

    @property
    def warnings(self) -> str:
        """The text on standard error; available after the exit."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def _read(self) -> bool:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self._patience)
        assert ready, f"no more output: {self.lines}"
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *whole, self._partial = (self._partial + data).split(b"\n")
        self.lines += [json.loads(line) for line in whole]
        return bool(data)
