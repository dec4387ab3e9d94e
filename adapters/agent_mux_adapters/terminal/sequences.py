"""The parser of terminal output: text, control characters and escape sequences (ECMA-48, xterm).

A state machine consumes one character at a time, so the result does not depend on where chunks end. Sequences that are
incomplete, malformed or unsupported are dropped, as a terminal does, and never become text.
"""

import re
from collections.abc import Callable
from typing import Protocol

LONGEST_SEQUENCE = 256
"""Maximum characters of a sequence's parameters; longer sequences are ignored."""
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_STRING_BODY = re.compile(r"[^\x07\x18\x1a\x1b\x9c]+")
_ESCAPE, _BELL, _TERMINATOR = "\x1b", "\x07", "\x9c"
_ABORTS = "\x18\x1a"
_STRINGS = "]PX^_"
"""Introduce a string for the terminal (title, colour, image), whose content is not text."""
_DIGITS = 5
"""Digits of a parameter that are read: no screen is larger."""
_PARAMETERS = re.compile(r"([<-?]?)([0-9;]*)")
"""Private prefix and parameters; sequences with intermediate characters or sub-parameters are not supported."""


class SequenceHandler(Protocol):
    """The receiver of the parsed output."""

    def text(self, text: str) -> None:
        """Receive a run of printable characters."""

    def control(self, character: str) -> None:
        """Receive one control character below U+0020."""

    def escape(self, rest: str) -> None:
        """Receive a short sequence, without its `ESC`."""

    def sequence(self, prefix: str, parameters: tuple[int, ...], final: str) -> None:
        """Receive `ESC [ prefix parameters final`; omitted parameters are 0."""


class EscapeParser:
    """The parser of one stream of characters."""

    def __init__(self, handler: SequenceHandler) -> None:
        self._handler = handler
        self._collected = ""
        self._state: Callable[[str], None] = self._ground

    def feed(self, text: str) -> None:
        """Parse the next characters of the stream."""
        position = 0
        while position < len(text):
            run = self._run(text, position)
            if run is None:
                self._state(text[position])
                position += 1
            else:
                position = run

    def _run(self, text: str, position: int) -> int | None:
        """Consume a run of text or string characters; return its end, None if there is none."""
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
        elif character > "\x7f":  # an 8-bit control character is `ESC` and a 7-bit one
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
        if character == _ESCAPE:  # ends the string: it starts the terminator or another sequence
            self._begin(self._escape)
        elif character in {_BELL, _TERMINATOR} or character in _ABORTS:
            self._begin(self._ground)

    # -- helpers

    def _begin(self, state: Callable[[str], None]) -> None:
        self._state, self._collected = state, ""

    def _interrupts(self, character: str) -> bool:
        """Execute a control character within a sequence; return whether it was one. Some end the sequence."""
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
