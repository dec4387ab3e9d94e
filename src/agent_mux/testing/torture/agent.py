r"""A coding agent that misbehaves on demand: `python -I -S agent.py <what> <size> <token>`.

It prints one JSON object per line. `{"say": "<number> ..."}` is a fragment of its answer, numbered from 0, so that who
reads can tell what is missing; `{"done": true}` is its closing message. All its children carry the token in their argv,
whatever else they are rid of. A program of its own: it imports the standard library only.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
FOR_EVER = 1000.0  # seconds: longer than any bound
HOLDER_SECONDS = 60.0
_BEHAVIOURS: dict[str, Callable[[int], None]] = {}


def behaviour(function: Callable[[int], None]) -> Callable[[int], None]:
    """The function is what an argument of this program names, with - for _."""
    _BEHAVIOURS[function.__name__.replace("_", "-")] = function
    return function


# -- how it speaks


def put(data: bytes, descriptor: int = 1) -> None:
    """Print bytes, all of them."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def line(number: int, text: str = "") -> bytes:
    """A fragment of the answer."""
    return json.dumps({"say": f"{number} {text}"}, ensure_ascii=False).encode() + b"\n"


def say(*numbers: int) -> None:
    """Print fragments."""
    put(b"".join(map(line, numbers)))


def done() -> None:
    """Print the closing message."""
    put(b'{"done": true}\n')


def hear() -> None:
    """Wait for the prompt. Without one there is nothing to do, as for any agent."""
    if not sys.stdin.readline():
        sys.exit(1)


def rest() -> None:
    """Read until nothing more comes."""
    for _ in sys.stdin:
        pass


def sleep(seconds: float = FOR_EVER) -> None:
    """Do nothing, whatever signals come."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)


def ignore(*numbers: int) -> None:
    """Signals that mean nothing to it, or to its children."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


# -- what it prints


@behaviour
def long_line(mebibytes: int) -> None:
    """One line of that size."""
    put(line(0, "x" * (mebibytes * MIB)))
    done()


@behaviour
def split_utf8(_: int) -> None:
    """The same line, cut at every byte."""
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
    """What is no UTF-8, inside and outside of JSON; lone surrogates; NUL."""
    put(b'{"say": "0 \xff\xfe\xc0\xaf"}\n')
    put(b"\xff\xff\xff \x00\x01\x02\n")
    put(b'{"say": "1 \\ud800 \\udfff\\ud83d"}\n')
    put(b'{"say": "2 \x00 \xed\xa0\x80"}\n')
    put(b'\xef\xbb\xbf{"say": "3 after a byte order mark"}\n')
    put(b"\xf0\x9f\x98\n", 2)
    done()


@behaviour
def no_final_newline(_: int) -> None:
    """The closing message is the last that it prints, without a newline."""
    say(0)
    put(b'{"done": true}')


@behaviour
def noise(_: int) -> None:
    """Banners, colours, progress bars and blank lines between the lines."""
    put(b"\x1b[2J\x1b[1;31mWelcome!\x1b[0m\r\n\n   \n\r\r\n")
    for number in range(20):
        put(b"\x1b[33mwarning\x1b[0m: [%d%%]\r[##    ]\r[####  ]\n" % number)
        put(line(number))
        put(b"\x1b]0;a title\x07\x1b[?25l\n", number % 2 + 1)
    done()


@behaviour
def unknown_types(_: int) -> None:
    """JSON of every kind that nobody has heard of."""
    for number, native in enumerate(('{"surprise": {"a": [1, null]}}', "[]", "17", "null", '"word"', "{}", "{" * 5000)):
        put(native.encode() + b"\n" + line(number))
    put(b'{"say": 17}\n{"say": null}\n{"say": ["0"]}\n{"ask": {}}\n')
    put(b'{"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    done()


@behaviour
def two_results(_: int) -> None:
    """It is done, and done again."""
    say(0)
    done()
    say(1)
    done()
    done()


@behaviour
def stderr_flood(mebibytes: int) -> None:
    """Much on standard error, and little on standard output between."""
    block = (b"e" * 1023 + b"\n") * 1024
    for number in range(mebibytes):
        put(block, 2)
        say(number)
    done()


@behaviour
def event_flood(lines: int) -> None:
    """As fast as it can."""
    for first in range(0, lines, 1000):
        say(*range(first, min(first + 1000, lines)))
    done()


@behaviour
def flood_then_silence(lines: int) -> None:
    """Much, and then nothing."""
    say(*range(lines))
    sleep()


@behaviour
def silence(_: int) -> None:
    """Nothing."""
    sleep()


# -- how it listens


@behaviour
def deaf(_: int) -> None:
    """It never reads, and works on."""
    say(0)
    time.sleep(0.5)
    say(1)
    done()


@behaviour
def deaf_for_ever(_: int) -> None:
    """It never reads, and never ends."""
    say(0)
    sleep()


@behaviour
def hangs_up(_: int) -> None:
    """It closes its standard input, and works on."""
    hear()
    os.close(0)
    say(0)
    time.sleep(0.3)
    say(1)
    done()


@behaviour
def asks_and_dies(_: int) -> None:
    """It asks for permission and does not wait for the answer."""
    say(0)
    put(b'{"ask": "rm -rf /"}\n')
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


# -- how it ends


@behaviour
def crash_in_line(_: int) -> None:
    """Dead in the middle of a word."""
    say(0)
    put(b'{"say": "1 the middle of')
    os._exit(3)


@behaviour
def no_result(_: int) -> None:
    """Gone with a smile, and without a closing message."""
    say(0)


@behaviour
def stubborn(_: int) -> None:
    """Neither SIGTERM nor SIGINT nor SIGHUP ends it, and it has a child of the kind."""
    ignore(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    fork(session=True)
    say(0)
    sleep()


@behaviour
def stopped(_: int) -> None:
    """It stops itself, as Ctrl-Z does."""
    say(0)
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep()


# -- what it leaves


def fork(*, session: bool = False, orphan: bool = False, clean: bool = False, silent: bool = True) -> None:
    """A child that sleeps: in a session of its own, without a parent, without the environment, without our pipes."""
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
    os.read(read, 1)  # until it is what it is to be
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
        os.execve(sys.executable, argv, {})  # noqa: S606  # that is what it does
    os.close(written)
    sleep(HOLDER_SECONDS)


@behaviour
def sleeper(descriptor: int) -> None:
    """What a child with a clean environment is: it ignores what can be ignored, says that it is there, and sleeps."""
    ignore(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    os.close(descriptor)
    sleep(HOLDER_SECONDS)


@behaviour
def holder(_: int) -> None:
    """It is done, and a grandchild keeps its standard output."""
    fork(session=True, orphan=True, silent=False)
    say(0)
    done()


@behaviour
def clean_holder(_: int) -> None:
    """As above; the grandchild has nothing of its environment and ignores signals."""
    fork(session=True, orphan=True, clean=True, silent=False)
    say(0)
    done()


@behaviour
def double_fork(_: int) -> None:
    """It is done, and daemons of every kind go on."""
    fork(session=True, orphan=True)
    fork(session=True, orphan=True, clean=True)
    fork(orphan=True, clean=True)
    say(0)
    done()


@behaviour
def daemons_and_work(_: int) -> None:
    """Daemons of every kind, and it works on."""
    ignore(signal.SIGTERM)
    fork(session=True, orphan=True)
    fork(session=True, orphan=True, clean=True)
    say(0)
    sleep()


@behaviour
def burst(children: int) -> None:
    """Many children at once, of every kind."""
    for number in range(children):
        fork(session=number % 2 == 0, orphan=number % 3 == 0, clean=number % 5 == 0, silent=number % 7 != 0)
    say(0)
    done()


@behaviour
def writes_for_ever(_: int) -> None:
    """It prints without an end, so that whoever dies dies in the middle of something."""
    number = 0
    while True:
        say(*range(number, number + 20))
        number += 20
        time.sleep(0.002)


def main() -> None:
    """Do what the first argument names."""
    what, size = sys.argv[1], int(sys.argv[2])
    if os.isatty(0):
        _be_quiet()
    if what not in {"deaf", "deaf-for-ever", "hangs-up", "sleeper"}:
        hear()
    _BEHAVIOURS[what](size)
    if what in {"long-line", "event-flood"}:
        rest()


def _be_quiet() -> None:
    import termios  # noqa: PLC0415  # not on every platform

    settings = termios.tcgetattr(0)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, settings)


if __name__ == "__main__":
    main()
