"""The answer on a screen: the text below our prompt, without what the program draws around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

from agent_mux_adapters.terminal.profile import Profile

_SHORTEST_ECHO = 3
"""Characters of a prompt that identify its echo: a wrapped line shows only the beginning of the prompt."""

_LONGEST_INDENT = 3
"""Characters that a program may draw in front of each line of a prompt."""
_BORDERS = "│┃|║"


@dataclass(frozen=True, slots=True)
class PromptBaseline:
    """The state of the screen when a prompt was typed."""

    visible: tuple[str, ...]
    echoes: int
    """Number of lines that looked like the prompt; the next such line is its echo, and later ones may repeat it."""


def capture_baseline(lines: Sequence[str], prompt: str, profile: Profile) -> PromptBaseline:
    """Return the state of the screen, to compare with when the answer is read."""
    return PromptBaseline(tuple(lines[: _footer(lines, profile)]), len(_echoes(lines, prompt)))


def answer_below(lines: Sequence[str], prompt: str, baseline: PromptBaseline, profile: Profile) -> str:
    """Return the text below the echo of the prompt; empty if there is no answer yet."""
    visible = lines[: _footer(lines, profile)]
    echoes = _echoes(visible, prompt)
    if not echoes and tuple(visible) == baseline.visible:
        return ""
    # Without an echo, or with fewer than before, the answer has pushed it off a screen that the program draws itself.
    begin = _end_of_echo(visible, echoes[min(baseline.echoes, len(echoes) - 1)], prompt) if echoes else 0
    chrome = [re.compile(pattern) for pattern in profile.chrome]
    below = [line for line in visible[begin:] if not any(pattern.search(line) for pattern in chrome)]
    return dedent("\n".join(_without_repeated_blanks(below))).strip()


def _footer(lines: Sequence[str], profile: Profile) -> int:
    """Return the line where answers end: the input box (the last matches of `footer`), else the last non-empty line."""
    if profile.footer is None:
        filled = [index for index, line in enumerate(lines) if line.strip()]
        return filled[-1] if filled else 0  # the line of the waiting prompt
    matches = [index for index, line in enumerate(lines) if re.search(profile.footer, line)]
    if not matches:
        return len(lines)
    # A box has two borders: the first of the last pair begins it.
    return matches[-2] if len(matches) > 1 else matches[-1]


def _echoes(lines: Sequence[str], prompt: str) -> list[int]:
    first = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    for length in (len(first), max(len(first) // 2, _SHORTEST_ECHO), _SHORTEST_ECHO):
        beginning = first[:length]
        echoes = [index for index, line in enumerate(lines) if beginning and beginning in line]
        if echoes:
            return echoes
    return []


def _end_of_echo(lines: Sequence[str], begin: int, prompt: str) -> int:
    """Return the line after the echo, which has several lines for a long prompt that was wrapped."""
    rest, end = "".join(prompt.split()), begin + 1
    for index in range(begin, len(lines)):
        shown = "".join(lines[index].split()).rstrip(_BORDERS)
        indents = range(len(shown) if index == begin else _LONGEST_INDENT)
        part = next((shown[indent:] for indent in indents if rest.startswith(shown[indent:] or "\n")), "")
        if len(shown) > _LONGEST_INDENT and len(part) < min(_SHORTEST_ECHO, len(rest)):
            return end
        if part:
            rest, end = rest[len(part) :], index + 1
        if not rest:
            return end
    return end


def _without_repeated_blanks(lines: Sequence[str]) -> list[str]:
    return [line for index, line in enumerate(lines) if line.strip() or (index and lines[index - 1].strip())]
