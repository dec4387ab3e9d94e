"""An interactive test program: alternate screen, box around the input, spinner, colours, dialogs.

    python scripted_tui.py

`fail` as a prompt shows an error, `ask TEXT` a dialog, `menu TEXT` a menu, `twice TEXT` the same dialog twice,
`question` a question, `stream TEXT` comes word by word, `long` is more than a screen, `die` ends it in the middle;
everything else is answered with itself, and the size of the terminal. Ctrl-C stops an answer, Ctrl-D ends it. While it
works there is a file `working` in the current directory.
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
WORKING = Path("working")
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
transcript: list[str] = []


def draw(status: str = "", typed: str = "", dialog: str = "") -> None:
    columns, rows = shutil.get_terminal_size()
    body = [*transcript, *([f"{status} Working..."] if status else []), *dialog.splitlines()]
    box = ["─" * columns, typed, "─" * columns, "\x1b[2mscripted 1.0\x1b[0m"]
    shown = body[-(rows - len(box)) :]
    out = ["\x1b[H\x1b[2J", *(f"{line}\x1b[K\r\n" for line in shown), "\r\n".join(box)]
    whole = "".join(out).encode()
    for start in range(0, len(whole), 7):  # small chunks split sequences and characters
        os.write(1, whole[start : start + 7])


def key(timeout: float | None = None) -> str:
    """Return a key, or an empty string when none is pressed; replies of the terminal are skipped."""
    ready, _, _ = select.select([0], [], [], timeout)
    pressed = os.read(0, 1).decode("latin-1") if ready else ""
    if pressed != "\x1b" or not select.select([0], [], [], 0.05)[0]:
        return pressed
    while not (pressed[-1].isalpha() or pressed[-1] == "~"):
        pressed += os.read(0, 1).decode("latin-1")
    return pressed if pressed in {PASTE, PASTED} else key(timeout)


def work(seconds: float) -> bool:
    """Show progress; return False if it was interrupted."""
    end = time.monotonic() + seconds
    turn = 0
    WORKING.touch()
    while time.monotonic() < end:
        draw(status=SPINNER[turn % len(SPINNER)])
        turn += 1
        if key(0.1) == "\x03":
            transcript.append("\x1b[31mStopped.\x1b[0m")
            WORKING.unlink()
            return False
    WORKING.unlink()
    return True


def line(dialog: str = "") -> str:
    """Return the text typed until it is submitted; line breaks within a paste are kept."""
    typed, is_pasted = b"", False
    while True:
        draw(typed=typed.decode("utf-8", "ignore").replace("\n", " "), dialog=dialog)
        pressed = key()
        if pressed in {PASTE, PASTED}:
            is_pasted = pressed == PASTE
        elif pressed == "\r" and is_pasted:
            typed += b"\n"
        elif pressed == "\r":
            return typed.decode("utf-8", "replace")
        elif pressed == "\x04" and not typed:
            return pressed
        elif pressed not in {"\x03", "\x04"}:
            typed += pressed.encode("latin-1")


def asked(command: str) -> str:
    return line(f"Allow this command?\n  {command}\n[y] yes  [a] always  [n] no")


def chosen(dialog: str) -> bool:
    """Return whether the first entry of a menu is selected; Escape selects none."""
    while True:
        draw(dialog=dialog)
        pressed = key()
        if pressed in {"\r", "\x1b"}:
            return pressed == "\r"


def stream(text: str) -> None:
    """Print word by word, with pauses shorter than the rest."""
    transcript.append("")
    for word in text.split():
        transcript[-1] += f"{word} "
        draw(status="+")
        time.sleep(0.15)


def answer(prompt: str) -> None:
    transcript.extend(f"\x1b[1m> {part}\x1b[0m" for part in prompt.split("\n"))
    word, _, rest = prompt.partition(" ")
    if not work(float(os.environ.get("TUI_SECONDS", "0.3"))):
        return
    if word == "stream":
        stream(rest)
    elif word == "ask":
        transcript.append({"y": "It ran.", "a": "It ran, and will run."}.get(asked(rest), "It did not run."))
    elif word == "twice":
        transcript.append(f"You said {asked(rest)} and {asked(rest)}.")
    elif word == "menu":
        runs = chosen(f"Run this command?\n\n  {rest}\n\n\u276f 1. Yes\n  2. No (esc)")
        transcript.append("It ran." if runs else "It did not run.")
    elif word == "fail":
        transcript.append("\x1b[31mError: the provider says 401\x1b[0m")
    elif word == "question":
        transcript.append(f"You like {line('Which colour?')}.")
    elif word == "long":
        transcript.extend(f"line {number} of many" for number in range(100))
    elif word == "die":
        draw(status="!")
        os._exit(3)
    else:
        typed, columns = prompt.replace("\n", " / "), shutil.get_terminal_size().columns
        transcript.append(f"You said \x1b[4m{typed}\x1b[0m on {columns} columns — naïve 日本 😀")


def main() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    signal.signal(signal.SIGWINCH, lambda *_: draw())
    os.write(1, b"\x1b[?1049h\x1b[?2004h\x1b[c\x1b]0;scripted\x07")
    try:
        while (prompt := line()) != "\x04":
            answer(prompt)
    finally:
        os.write(1, b"\x1b[?2004l\x1b[?1049l")
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main()
    sys.exit(0)
