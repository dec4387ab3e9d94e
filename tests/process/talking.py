"""An agent to talk to, and a person who does."""

import fcntl
import json
import os
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pyte
from tests.process.installed import PATIENCE, Installed, Terminal

from agent_mux import validate
from agent_mux.process.marker import processes_of
from agent_mux.run.commands import RESPONSE_TYPES

TALKER = """
def hear_of(what):
    while what not in (heard := hear() or {what: None}): waiting.append(heard)
    return heard[what]
def answer(said):
    word, _, rest = said.partition(' ')
    if word == 'ask':
        say(ask=rest)
        say(text='it was ' + hear_of('answer'))
    elif word == 'question':
        say(question=rest)
        say(text='so ' + hear_of('answer'))
    elif word == 'work':
        say(text='working')
        hear_of('interrupt')
        say(over=True); say(stopped=True)
        return
    elif word == 'begin':
        say(text=rest)
        open(os.environ['GO']).read()
        say(text=' and the end')
    elif word == 'prepare':
        open(os.environ['GO']).read()
        say(ask=rest)
        say(text='it was ' + hear_of('answer'))
    elif word == 'cost':
        say(used=[1200, 34]); say(cost=0.5); say(text='spent')
    elif word == 'flood':
        for number in range(5000): say(text='line %d of a flood\\n' % number)
        open(rest, 'w').close()
    elif word == 'die':
        sys.exit(7)
    else:
        say(text='you said ' + said)
    say(over=True)
    say(done=True)
waiting = []
say(session='S')
while (heard := waiting.pop(0) if waiting else hear()):
    if 'send' in heard: answer(heard['send'])
    if 'prompt' in heard: answer('first')
"""
"""Answers each prompt by its first word, and leaves when there are no more."""

COLUMNS, ROWS = 200, 120  # so many that nothing scrolls away or is wrapped


class Talk(Terminal):
    """A person who talks: sees the screen as it is, and whether the terminal was given back as it was."""

    def prepare(self, terminal: int) -> None:
        self.resize(COLUMNS, ROWS)
        self.attributes = termios.tcgetattr(terminal)
        self._display = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._display)

    def resize(self, columns: int, rows: int) -> None:
        """Another size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def show(self, data: bytes) -> None:
        super().show(data)
        self._stream.feed(data.decode("utf-8", "replace"))

    @property
    def lines(self) -> list[str]:
        """What is on the screen, without empty lines."""
        return [line.rstrip() for line in self._display.display if line.strip()]

    def ready(self) -> None:
        """Wait until the agent is there."""
        self.see("scripted, session S", ">")

    def see(self, *lines: str, times: int = 1) -> None:
        """Wait until the last lines on the screen are these, or until one line is there so many times."""
        while self.lines[-len(lines) :] != list(lines) if times == 1 else self.lines.count(lines[0]) < times:
            self._go_on(f"{lines} times {times}")

    def see_line(self, begin: str) -> str:
        """Wait for a line that begins so."""
        while not (found := [line for line in self.lines if line.startswith(begin)]):
            self._go_on(begin)
        return found[-1]

    def enter(self, line: str) -> None:
        """Type a line."""
        self.type(line + "\r")

    def left(self, code: int) -> list[str]:
        """It ended with this exit code, and the terminal is as it was. Returns what is on the screen."""
        ended = self.finish()
        assert ended == code, self.lines
        assert self.is_as_it_was, "the terminal was left in another mode"
        return self.lines

    @property
    def is_as_it_was(self) -> bool:
        return bool(termios.tcgetattr(self._master) == self.attributes)

    def _go_on(self, wanted: str) -> None:
        try:
            has_more = self.read()
        except AssertionError as error:
            raise AssertionError(f"{wanted!r} never came; the screen:\n" + "\n".join(self.lines)) from error
        assert has_more, f"{wanted!r} never came; the screen:\n" + "\n".join(self.lines)


def talk(installed: Installed, *arguments: object, body: str = TALKER, **extra: Any) -> Talk:
    """`amux run -i scripted` at a terminal."""
    command = installed.command(["run", "-i", "scripted", "--no-color", *arguments])
    return Talk(command, installed.environment(body, extra), installed.home)


def let_go(installed: Installed) -> str:
    """A named pipe that the agent waits for, as its variable GO."""
    path = installed.home / "go"
    os.mkfifo(path)
    return str(path)


def program(installed: Installed, *arguments: object, body: str = TALKER, **extra: str) -> "Program":
    """`amux run -i scripted --json` between pipes."""
    command = installed.command(["run", "-i", "scripted", "--json", "--compact", *arguments])
    return Program(command, installed.environment(body, extra), installed.home)


class Program:
    """A program that talks to `amux run -i --json`: one line in, lines out."""

    def __init__(self, command: list[str], environment: Mapping[str, str], cwd: Path) -> None:
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
        self._begun = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def say(self, line: str | None = None, **command: Any) -> None:
        """A line, or a command."""
        assert self.process.stdin is not None
        self.process.stdin.write((line if line is not None else json.dumps(command)).encode() + b"\n")

    def hear(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Wait for a line of this type with these fields, after what was heard before."""
        while True:
            while self._seen < len(self.lines):
                line = self.lines[self._seen]
                self._seen += 1
                if line["type"] == type_ and fields.items() <= line.items():
                    return line
            assert self._read(), f"{type_} {fields} never came: {self.lines}"

    def leave(self) -> None:
        """The end of what we say."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def left(self, code: int) -> dict[str, Any]:
        """It ended with this exit code. Returns its last line, the result; the events before it are lawful."""
        while self._read():
            pass
        assert self.process.wait(PATIENCE) == code, self.lines
        *lines, result = self.lines
        assert result["type"] == "run_result"
        assert validate([line for line in lines if line["type"] not in RESPONSE_TYPES]) == []
        assert processes_of(result["runId"]) == []
        return result

    @property
    def warnings(self) -> str:
        """Standard error, when it is over."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def _read(self) -> bool:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, f"nothing came any more: {self.lines}"
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *whole, self._begun = (self._begun + data).split(b"\n")
        self.lines += [json.loads(line) for line in whole]
        return bool(data)
