"""The answer on a screen: what stands below our prompt, without what the program draws around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

from agent_mux_adapters.terminal.profile import Profile

_SHORTEST_ECHO = 3
"""Letters of a prompt by which its echo can be found: where lines are wrapped, only its beginning stands in one."""

_LONGEST_INDENT = 3
"""Characters that are drawn in front of each line of a prompt."""
_BORDERS = "│┃|║"


@dataclass(frozen=True, slots=True)
class Before:
    """What was shown when a prompt was typed."""

    shown: tuple[str, ...]
    echoes: int
    """Lines that looked like the prompt: the next one is its echo, and what follows may repeat it."""


def before(lines: Sequence[str], prompt: str, profile: Profile) -> Before:
    """To be remembered when a prompt is typed."""
    return Before(tuple(lines[: _footer(lines, profile)]), len(_echoes(lines, prompt)))


def answer_below(lines: Sequence[str], prompt: str, earlier: Before, profile: Profile) -> str:
    """The text below the echo of the prompt. Empty when there is none yet."""
    shown = lines[: _footer(lines, profile)]
    found = _echoes(shown, prompt)
    if not found and tuple(shown) == earlier.shown:
        return ""
    # No echo: the answer has pushed it off a screen that the program draws itself. Fewer than before: likewise.
    begin = _end_of_echo(shown, found[min(earlier.echoes, len(found) - 1)], prompt) if found else 0
    chrome = [re.compile(pattern) for pattern in profile.chrome]
    below = [line for line in shown[begin:] if not any(pattern.search(line) for pattern in chrome)]
    return dedent("\n".join(_without_repeated_blanks(below))).strip()


def _footer(lines: Sequence[str], profile: Profile) -> int:
    """Where the answers end: the input box, as the last matches of `footer`; else the last line that says something."""
    if profile.footer is None:
        said = [index for index, line in enumerate(lines) if line.strip()]
        return said[-1] if said else 0  # the prompt that waits
    found = [index for index, line in enumerate(lines) if re.search(profile.footer, line)]
    if not found:
        return len(lines)
    # A box has two borders; the first of the last pair is where it begins.
    return found[-2] if len(found) > 1 else found[-1]


def _echoes(lines: Sequence[str], prompt: str) -> list[int]:
    first = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    for length in (len(first), max(len(first) // 2, _SHORTEST_ECHO), _SHORTEST_ECHO):
        beginning = first[:length]
        found = [index for index, line in enumerate(lines) if beginning and beginning in line]
        if found:
            return found
    return []


def _end_of_echo(lines: Sequence[str], begin: int, prompt: str) -> int:
    """A prompt of several lines, or a long one that was wrapped, is echoed in several: behind the last of them."""
    rest, end = "".join(prompt.split()), begin + 1
    for index in range(begin, len(lines)):
        said = "".join(lines[index].split()).rstrip(_BORDERS)
        indents = range(len(said) if index == begin else _LONGEST_INDENT)
        part = next((said[indent:] for indent in indents if rest.startswith(said[indent:] or "\n")), "")
        if len(said) > _LONGEST_INDENT and len(part) < min(_SHORTEST_ECHO, len(rest)):
            return end
        if part:
            rest, end = rest[len(part) :], index + 1
        if not rest:
            return end
    return end


def _without_repeated_blanks(lines: Sequence[str]) -> list[str]:
    return [line for index, line in enumerate(lines) if line.strip() or (index and lines[index - 1].strip())]
