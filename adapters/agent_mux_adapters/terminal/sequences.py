"""What a program sends to a terminal, taken apart: text, control characters, and escape sequences (ECMA-48, xterm).

A state machine that takes one character after the other, so that nothing depends on where a chunk ends. What is cut
short, malformed or of no meaning here is swallowed as a terminal would swallow it, and never becomes text.
"""

import re
from collections.abc import Callable
from typing import Protocol

LONGEST_SEQUENCE = 256
"""Characters of the parameters of a sequence; a longer one is noise and does nothing."""
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_STRING_BODY = re.compile(r"[^\x07\x18\x1a\x1b\x9c]+")
_ESCAPE, _BELL, _TERMINATOR = "\x1b", "\x07", "\x9c"
_ABORTS = "\x18\x1a"
_STRINGS = "]PX^_"
"""Begin a string for the terminal (a title, a colour, an image): all that is in it is no text."""


class SequenceHandler(Protocol):
    """Is told what there was."""

    def text(self, text: str) -> None:
        """Printable characters."""

    def control(self, character: str) -> None:
        """One of the control characters below U+0020."""

    def escape(self, rest: str) -> None:
        """A short sequence, without its `ESC`."""

    def sequence(self, prefix: str, parameters: tuple[int, ...], final: str) -> None:
        """`ESC [ prefix parameters final`. A parameter that was left out is 0."""


class EscapeParser:
    """One stream of characters."""

    def __init__(self, handler: SequenceHandler) -> None:
        self._handler = handler
        self._collected = ""
        self._state: Callable[[str], None] = self._ground

    def feed(self, text: str) -> None:
        """Take these characters apart."""
        position = 0
        while position < len(text):
            run = self._run(text, position)
            if run is None:
                self._state(text[position])
                position += 1
            else:
                position = run

    def _run(self, text: str, position: int) -> int | None:
        """Where a run of characters ends that all mean the same, where there is one."""
        if self._state == self._ground:
            found = _TEXT.match(text, position)
            if found is not None:
                self._handler.text(found.group())
        elif self._state == self._string:
            found = _STRING_BODY.match(text, position)
        else:
            return None
        return found.end() if found is not None else None

    # -- states

    def _ground(self, character: str) -> None:
        if character == _ESCAPE:
            self._begin(self._escape)
        elif character < " ":
            self._handler.control(character)
        elif character > "\x7f":  # a control character of eight bits: as an escape and one of seven
            self._begin(self._escape)
            self._escape(chr(ord(character) - 0x40))

    def _escape(self, character: str) -> None:
        if self._interrupts(character):
            return
        if character == "[" and not self._collected:
            self._begin(self._sequence)
        elif character in _STRINGS and not self._collected:
            self._begin(self._string)
        elif " " <= character <= "/":
            self._collected = character
        else:
            rest = self._collected + character
            self._begin(self._ground)
            self._handler.escape(rest)

    def _sequence(self, character: str) -> None:
        if self._interrupts(character):
            return
        if "@" <= character <= "~":
            collected = self._collected
            self._begin(self._ground)
            self._dispatch(collected, character)
        elif character > "~":
            self._begin(self._ground)
        elif len(self._collected) < LONGEST_SEQUENCE:
            self._collected += character

    def _string(self, character: str) -> None:
        if character == _ESCAPE:  # begins its terminator, or the next sequence: the string is over in any case
            self._begin(self._escape)
        elif character in {_BELL, _TERMINATOR} or character in _ABORTS:
            self._begin(self._ground)

    # -- inside

    def _begin(self, state: Callable[[str], None]) -> None:
        self._state, self._collected = state, ""

    def _interrupts(self, character: str) -> bool:
        """A control character within a sequence is obeyed, or ends it."""
        if character == _ESCAPE:
            self._begin(self._escape)
        elif character in _ABORTS:
            self._begin(self._ground)
        elif character < " ":
            self._handler.control(character)
        return character < " "

    def _dispatch(self, collected: str, final: str) -> None:
        found = _PARAMETERS.fullmatch(collected)
        if found is None or len(collected) >= LONGEST_SEQUENCE:
            return
        prefix, numbers = found.groups()
        parameters = tuple(int(number[:_DIGITS] or 0) for number in numbers.split(";"))
        self._handler.sequence(prefix, parameters, final)


_DIGITS = 5
"""Of a number that counts: no screen is larger."""
_PARAMETERS = re.compile(r"([<-?]?)([0-9;]*)")
"""Without a character between parameters and end, and without sub-parameters: neither means anything to us."""
