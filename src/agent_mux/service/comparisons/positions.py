"""Positions in the stream of a comparison: facts of its ledger, and events of the concurrent trials.

The stream is merged from append-only files: the ledger, and the journal of each attempt. The events of an attempt
follow its `attempt_started` and precede the fact that closes it. A position is therefore the number of facts, and for
each attempt that is open there, the number of its events: `12,claude-1:57,codex-1:30`. It is valid for live and for
late readers, whatever the order in which the events of different trials arrived, and after any number of restarts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent_mux.compare.ledger import AnyFact, AttemptEnded, AttemptStarted, Begun, Ended, TrialEnded
from agent_mux.compare.records import TrialAttempt
from agent_mux.errors import FieldError, ValidationError

MAX_LENGTH = 6144
"""Characters of a position: an open attempt of each of 64 jobs has a name of at most 80."""
_FORM = re.compile(r"(\d{1,9})((?:,[A-Za-z0-9._-]{1,80}:\d{1,12})*)", re.ASCII)


@dataclass(slots=True)
class StreamPosition:
    """A position, which a reader advances."""

    facts: int = 0
    """Number of facts before it."""
    events: dict[str, int] = field(default_factory=dict)
    """By the trial of each open attempt: the number of its events before the position."""

    def __str__(self) -> str:
        return ",".join([str(self.facts), *(f"{trial}:{count}" for trial, count in self.events.items() if count)])

    @classmethod
    def parse(cls, text: str, field_name: str = "Last-Event-ID") -> "StreamPosition":
        """Parse the id of a message. Raises `ValidationError`, which names the field."""
        found = _FORM.fullmatch(text) if len(text) <= MAX_LENGTH else None
        if found is None:
            raise ValidationError([FieldError(field_name, text[:80], "the id of a message of this stream")])
        events = {}
        for part in filter(None, found[2].split(",")):
            trial, _, count = part.rpartition(":")
            events[trial] = int(count)
        return cls(int(found[1]), events)


class OpenAttempts:
    """The attempts that are open after some facts."""

    def __init__(self, facts: Iterable[AnyFact] = ()) -> None:
        """Start behind these facts."""
        self.by_trial: dict[str, TrialAttempt] = {}
        for fact in facts:
            self.apply(fact)

    def closed_by(self, fact: AnyFact) -> Sequence[str]:
        """Return the trials whose open attempt ends with a fact."""
        match fact:
            case AttemptEnded(trial=trial):
                return [trial] if trial in self.by_trial else []
            case TrialEnded(trial=ended):
                return [ended.id] if ended.id in self.by_trial else []
            case Begun() | Ended():
                return list(self.by_trial)
        return []

    def apply(self, fact: AnyFact) -> None:
        """Change to what is open after a fact."""
        for trial in self.closed_by(fact):
            del self.by_trial[trial]
        if isinstance(fact, AttemptStarted):
            self.by_trial[fact.trial] = fact.attempt

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.by_trial))


def check_position(position: StreamPosition, facts: Sequence[AnyFact]) -> None:
    """Raise `ValidationError` for a position that the stream cannot have."""
    opened = OpenAttempts(facts[: position.facts]).by_trial
    if position.facts > len(facts) or not position.events.keys() <= opened.keys():
        allowed = f"the id of a message of this comparison, which has {len(facts)} facts"
        raise ValidationError([FieldError("Last-Event-ID", str(position)[:80], allowed)])
