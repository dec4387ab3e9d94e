r"""A coding agent that misbehaves on demand: `python -I -S agent.py <what> <size> <token>`.

It prints one JSON object per line. `{"text": "<number> ..."}` is a fragment of its answer, numbered from 0, so that a
missing one is noticed; `{"done": true}` is its closing message. All its children carry the token in their argv, even
those with an empty environment. It is a program of its own and imports only the standard library.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
LONG_TIME = 1000.0  # seconds: longer than any bound
HOLDER_SECONDS = 60.0
_BEHAVIOURS: dict[str, Callable[[int], None]] = {}


def behaviour(function: Callable[[int], None]) -> Callable[[int], None]:
    """Register a function as a behaviour: its name, with - for _, is an argument of this program."""
    _BEHAVIOURS[function.__name__.replace("_", "-")] = function
    return function


# -- input and output


def put(data: bytes, descriptor: int = 1) -> None:
    """Write all bytes to a descriptor."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def line(number: int, text: str = "") -> bytes:
    """Return a fragment of the answer as a line."""
    return json.dumps({"text": f"{number} {text}"}, ensure_ascii=False).encode() + b"\n"


def put_fragments(*numbers: int) -> None:
    """Print the fragments with these numbers."""
    put(b"".join(map(line, numbers)))


def done() -> None:
    """Print the closing message of the turn."""
    put(b'{"done": true}\n')


def read_prompt() -> None:
    """Wait for the prompt, and exit when stdin ends without one."""
    if not sys.stdin.readline():
        sys.exit(1)


def read_to_end() -> None:
    """Read stdin until its end."""
    for _ in sys.stdin:
        pass


def sleep(seconds: float = LONG_TIME) -> None:
    """Sleep that long, whatever signals arrive."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)


def ignore(*numbers: int) -> None:
    """Ignore these signals, in this process and its children."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


# -- behaviours: output


@behaviour
def long_line(mebibytes: int) -> None:
    """Print one line of that size."""
    put(line(0, "x" * (mebibytes * MIB)))
    done()


@behaviour
def split_utf8(_: int) -> None:
    """Print the same line in two parts, cut at each byte in turn."""
    whole = line(0, "aé日😀 ß")
    for cut in range(1, len(whole)):
        number = cut - 1
        whole = line(number, "aé日😀 ß")
        put(whole[:cut])
        time.sleep(0.002)  # so that the parts are read one by one
        put(whole[cut:])
    done()


@behaviour
def invalid_bytes(_: int) -> None:
    """Print invalid UTF-8 inside and outside of JSON, unpaired surrogates, and NUL."""
    put(b'{"text": "0 \xff\xfe\xc0\xaf"}\n')
    put(b"\xff\xff\xff \x00\x01\x02\n")
    put(b'{"text": "1 \\ud800 \\udfff\\ud83d"}\n')
    put(b'{"text": "2 \x00 \xed\xa0\x80"}\n')
    put(b'\xef\xbb\xbf{"text": "3 after a byte order mark"}\n')
    put(b"\xf0\x9f\x98\n", 2)
    done()


@behaviour
def no_final_newline(_: int) -> None:
    """Print a closing message without a newline."""
    put_fragments(0)
    put(b'{"done": true}')


@behaviour
def noise(_: int) -> None:
    """Print banners, colours, progress bars and blank lines between the lines."""
    put(b"\x1b[2J\x1b[1;31mWelcome!\x1b[0m\r\n\n   \n\r\r\n")
    for number in range(20):
        put(b"\x1b[33mwarning\x1b[0m: [%d%%]\r[##    ]\r[####  ]\n" % number)
        put(line(number))
        put(b"\x1b]0;a title\x07\x1b[?25l\n", number % 2 + 1)
    done()


@behaviour
def unknown_types(_: int) -> None:
    """Print JSON values of every type with unknown keys."""
    for number, native in enumerate(('{"surprise": {"a": [1, null]}}', "[]", "17", "null", '"word"', "{}", "{" * 5000)):
        put(native.encode() + b"\n" + line(number))
    put(b'{"text": 17}\n{"text": null}\n{"text": ["0"]}\n{"ask": {}}\n')
    put(b'{"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    done()


@behaviour
def two_results(_: int) -> None:
    """Print the closing message three times."""
    put_fragments(0)
    done()
    put_fragments(1)
    done()
    done()


@behaviour
def stderr_flood(mebibytes: int) -> None:
    """Print much to stderr, and a fragment after each MiB."""
    block = (b"e" * 1023 + b"\n") * 1024
    for number in range(mebibytes):
        put(block, 2)
        put_fragments(number)
    done()


@behaviour
def event_flood(lines: int) -> None:
    """Print fragments as fast as possible."""
    for first in range(0, lines, 1000):
        put_fragments(*range(first, min(first + 1000, lines)))
    done()


@behaviour
def flood_then_silence(lines: int) -> None:
    """Print fragments, then nothing for a long time."""
    put_fragments(*range(lines))
    sleep()


@behaviour
def silence(_: int) -> None:
    """Print nothing for a long time."""
    sleep()


# -- behaviours: input


@behaviour
def deaf(_: int) -> None:
    """Never read stdin, and complete."""
    put_fragments(0)
    time.sleep(0.5)
    put_fragments(1)
    done()


@behaviour
def deaf_for_ever(_: int) -> None:
    """Never read stdin, and never end."""
    put_fragments(0)
    sleep()


@behaviour
def hangs_up(_: int) -> None:
    """Close stdin, print more fragments, and complete."""
    read_prompt()
    os.close(0)
    put_fragments(0)
    time.sleep(0.3)
    put_fragments(1)
    done()


@behaviour
def asks_and_dies(_: int) -> None:
    """Ask for permission, and die without waiting for the answer."""
    put_fragments(0)
    put(b'{"ask": "rm -rf /"}\n')
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


# -- behaviours: the end


@behaviour
def crash_in_line(_: int) -> None:
    """Exit with code 3 in the middle of a line."""
    put_fragments(0)
    put(b'{"text": "1 the middle of')
    os._exit(3)


@behaviour
def no_result(_: int) -> None:
    """Exit with code 0 and without a closing message."""
    put_fragments(0)


@behaviour
def stubborn(_: int) -> None:
    """Ignore SIGTERM, SIGINT and SIGHUP, together with a child process."""
    ignore(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    fork(session=True)
    put_fragments(0)
    sleep()


@behaviour
def stopped(_: int) -> None:
    """Stop its own process with SIGSTOP."""
    put_fragments(0)
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep()


# -- behaviours: child processes


def fork(*, session: bool = False, orphan: bool = False, clean: bool = False, silent: bool = True) -> None:
    """Start a child that sleeps.

    It may have a session of its own (`session`), no parent (`orphan`), no environment (`clean`), none of our pipes
    (`silent`).
    """
    read, written = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            _become(written, session=session, orphan=orphan, clean=clean, silent=silent)
        finally:
            os._exit(0)
    os.close(written)
    if orphan:
        os.waitpid(child, 0)
    os.read(read, 1)  # until the child has closed its end: it is set up
    os.close(read)


def _become(written: int, *, session: bool, orphan: bool, clean: bool, silent: bool) -> None:
    if session:
        os.setsid()
    if orphan and os.fork():
        return
    if silent:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
    if clean:
        os.set_inheritable(written, True)
        argv = [sys.executable, "-I", "-S", __file__, "sleeper", str(written), sys.argv[3]]
        os.execve(sys.executable, argv, {})  # noqa: S606  # the child becomes a program with an empty environment
    os.close(written)
    sleep(HOLDER_SECONDS)


@behaviour
def sleeper(descriptor: int) -> None:
    """Run as a child with an empty environment: ignore signals, close the descriptor as a sign of life, and sleep."""
    ignore(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    os.close(descriptor)
    sleep(HOLDER_SECONDS)


@behaviour
def holder(_: int) -> None:
    """Complete, while a grandchild keeps stdout open."""
    fork(session=True, orphan=True, silent=False)
    put_fragments(0)
    done()


@behaviour
def clean_holder(_: int) -> None:
    """Complete, while a grandchild without environment, which ignores signals, keeps stdout open."""
    fork(session=True, orphan=True, clean=True, silent=False)
    put_fragments(0)
    done()


@behaviour
def double_fork(_: int) -> None:
    """Complete, and leave daemons of every kind."""
    fork(session=True, orphan=True)
    fork(session=True, orphan=True, clean=True)
    fork(orphan=True, clean=True)
    put_fragments(0)
    done()


@behaviour
def daemons_and_work(_: int) -> None:
    """Start daemons, and never end."""
    ignore(signal.SIGTERM)
    fork(session=True, orphan=True)
    fork(session=True, orphan=True, clean=True)
    put_fragments(0)
    sleep()


@behaviour
def burst(children: int) -> None:
    """Start many children of every kind, and complete."""
    for number in range(children):
        fork(session=number % 2 == 0, orphan=number % 3 == 0, clean=number % 5 == 0, silent=number % 7 != 0)
    put_fragments(0)
    done()


@behaviour
def writes_for_ever(_: int) -> None:
    """Print without end, so that a client is killed while it writes."""
    number = 0
    while True:
        put_fragments(*range(number, number + 20))
        number += 20
        time.sleep(0.002)


def main() -> None:
    """Run the behaviour that the first argument names."""
    name, size = sys.argv[1], int(sys.argv[2])
    if os.isatty(0):
        _turn_off_echo()
    if name not in {"deaf", "deaf-for-ever", "hangs-up", "sleeper"}:
        read_prompt()
    _BEHAVIOURS[name](size)
    if name in {"long-line", "event-flood"}:
        read_to_end()


def _turn_off_echo() -> None:
    import termios  # noqa: PLC0415  # not on every platform

    settings = termios.tcgetattr(0)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, settings)


if __name__ == "__main__":
    main()
