"""Where the lines that an agent was sent belong between the lines that it printed.

A recording with times says so itself. One without is ordered by what the lines prove: an answer comes after its
question, at once; a request comes before its response, as late as that allows; the n-th prompt that no response
names comes before the n-th `init` of the agent, or at the first possible place where there are fewer of them.
"""

from bisect import bisect_right
from collections.abc import Sequence

from . import lines

START = 0


def places(
    printed: Sequence[bytes], sent: Sequence[bytes], *, times: Sequence[float], sent_times: Sequence[float]
) -> list[int]:
    """For each sent line: how many printed lines come before it. `sent_times` may be empty: nobody knows them."""
    agent = _Printed(printed)
    is_timed = len(sent_times) == len(sent) and len(times) == len(printed)
    found: list[int] = []
    earliest = START
    prompts = 0
    for index, line in enumerate(map(lines.sent, sent)):
        prompts += line.kind == lines.PROMPT
        earliest = max(earliest, agent.after_question(line))
        latest = agent.before_response(line)
        wanted = bisect_right(times, sent_times[index]) if is_timed else latest
        if wanted is None and line.kind == lines.PROMPT:
            wanted = agent.before_turn(prompts)
        if wanted is None:
            wanted = found[-1] if found else START
        found.append(max(earliest, min(wanted, len(printed) if latest is None else latest)))
    return _never_after_a_later_one(found)


class _Printed:
    """What the agent printed, by what it proves about order."""

    def __init__(self, printed: Sequence[bytes]) -> None:
        self._questions: dict[str | None, int] = {}
        self._responses: dict[str | None, int] = {}
        self._turns: list[int] = []
        for index, data in enumerate(printed):
            line = lines.printed(data)
            if line.kind == lines.ASK:
                self._questions.setdefault(line.key, index)
            elif line.kind == lines.RESPONSE:
                self._responses.setdefault(line.key, index)
            elif line.kind == lines.TURN:
                self._turns.append(index)

    def after_question(self, line: lines.Line) -> int:
        known = line.kind == lines.ANSWER and line.key in self._questions
        return self._questions[line.key] + 1 if known else START

    def before_response(self, line: lines.Line) -> int | None:
        return None if line.kind == lines.ANSWER or line.key is None else self._responses.get(line.key)

    def before_turn(self, number: int) -> int | None:
        return self._turns[number - 1] if number <= len(self._turns) else None


def _never_after_a_later_one(found: list[int]) -> list[int]:
    """Sent lines keep their order: one whose response came late was still sent before the next."""
    for index in range(len(found) - 2, -1, -1):
        found[index] = min(found[index], found[index + 1])
    return found
