"""A program for people, as awkward as they are: alternate screen, box around the input, spinner, colours, dialogs.

    python scripted_tui.py

`fail` as a prompt shows an error, `ask TEXT` a dialog, `question` a question, `long` more than a screen, `die` ends it
in the middle; everything else is answered with itself, and the size of the terminal. Ctrl-C stops an answer, Ctrl-D
ends it.
"""

import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from pathlib import Path

SPINNER = "⠋⠙⠹⠸⠼"
said: list[str] = []


def draw(status: str = "", typed: str = "", dialog: str = "") -> None:
    columns, rows = shutil.get_terminal_size()
    body = [*said, *([f"{status} Working..."] if status else []), *dialog.splitlines()]
    box = ["─" * columns, typed, "─" * columns, f"\x1b[2m{str(Path.cwd())[:20]} scripted 1.0\x1b[0m"]
    shown = body[-(rows - len(box)) :]
    out = ["\x1b[H\x1b[2J", *(f"{line}\x1b[K\r\n" for line in shown), "\r\n".join(box)]
    whole = "".join(out).encode()
    for start in range(0, len(whole), 7):  # in small pieces: sequences and characters are cut anywhere
        os.write(1, whole[start : start + 7])


def key(timeout: float | None = None) -> str:
    ready, _, _ = select.select([0], [], [], timeout)
    pressed = os.read(0, 1).decode("latin-1") if ready else ""
    if pressed == "\x1b":  # what the terminal says of itself, as it was asked to
        while not os.read(0, 1).isalpha():
            pass
        return key(timeout)
    return pressed


def work(seconds: float) -> bool:
    """False: it was stopped."""
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        draw(status=SPINNER[turn % len(SPINNER)])
        turn += 1
        if key(0.1) == "\x03":
            said.append("\x1b[31mStopped.\x1b[0m")
            return False
    return True


def line(dialog: str = "") -> str:
    typed = b""
    while True:
        draw(typed=typed.decode("utf-8", "ignore"), dialog=dialog)
        pressed = key()
        if pressed in {"\r", "\x04"} and not (pressed == "\x04" and typed):
            return typed.decode("utf-8", "replace") if pressed == "\r" else "\x04"
        if pressed != "\x03":
            typed += pressed.encode("latin-1")


def answer(prompt: str) -> None:
    said.append(f"\x1b[1m> {prompt}\x1b[0m")
    word, _, rest = prompt.partition(" ")
    if not work(float(os.environ.get("TUI_SECONDS", "0.3"))):
        return
    if word == "fail":
        said.append("\x1b[31mError: the provider says 401\x1b[0m")
    elif word == "ask":
        reply = line(f"Allow this command?\n  {rest}\n[y] yes  [a] always  [n] no")
        said.append({"y": "It ran.", "a": "It ran, and will run."}.get(reply, "It did not run."))
    elif word == "question":
        said.append(f"You like {line('Which colour?')}.")
    elif word == "long":
        said.extend(f"line {number} of many" for number in range(100))
    elif word == "die":
        draw(status="!")
        os._exit(3)
    else:
        said.append(f"You said \x1b[4m{prompt}\x1b[0m on {shutil.get_terminal_size().columns} columns — naïve 日本 😀")


def main() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    signal.signal(signal.SIGWINCH, lambda *_: draw())
    os.write(1, b"\x1b[?1049h\x1b[c")
    try:
        while (prompt := line()) != "\x04":
            answer(prompt)
    finally:
        os.write(1, b"\x1b[?1049l")
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main()
    sys.exit(0)
