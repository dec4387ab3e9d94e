"""Hiding secrets that become whole only when fragments of several native lines are joined.

Each native line is redacted before it is recorded. A secret that a model streams in fragments is in none of the lines,
so the texts of facts are redacted again where the assembler joins them.

A later reader of the journal knows neither the values of the environment nor the numbers of the placeholders. What was
hidden or held back is therefore recorded: as *masks*, which count the texts of a record and contain no secret. Without
masks every text passes unchanged, as in journals of earlier versions.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.redaction import FragmentedText, Redactor, UnfinishedSecrets
from agent_mux.sdk import facts

Replacement = tuple[int, int, str]
"""Start and end in characters, and the placeholder."""
MAX_JOINED = 1000
"""Number of secrets in two lines that are remembered."""
PIECES = (facts.TextDelta, facts.ThinkingDelta, facts.ToolInput, facts.ToolOutput, facts.CommandOutput)
"""Facts of which the text is a fragment: `MaskedText` redacts it where it is joined."""
_PLACEHOLDER_AT_END = re.compile(r"\*\d+\*+\Z")
_KEYS = frozenset({"call_id", "request_id", "subagent_id", "session_id"})
"""Fields that name something by the id that its line has."""


class Mask(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """What was done to one text of a record."""

    number: int
    """Number of the text among those of the record that the assembler reads, from 0."""
    kept: int = -1
    """Number of characters of a text in fragments that were shown; -1: a whole text."""
    part: int = 0
    """Number of the string inside of a whole fact."""
    hidden: tuple[Replacement, ...] = ()
    """What was replaced in it."""


class Masks:
    """Redacts the texts of a run with a redactor, or as the masks of the journal have it."""

    def __init__(self) -> None:
        """Create the masks of a run that is read; `use` makes it a live one."""
        self._number = 0
        self._given: dict[int, list[Mask]] = {}
        self._made: list[Mask] = []
        self._joined: dict[str, str] = {}
        self.is_lost = False
        """Whether the writer of the journal was killed: nothing is known about what it held back."""
        self.unfinished: UnfinishedSecrets | None = None
        """What finds secrets, in a live run."""
        self.holds = True
        """Whether text is held back. False: the output has no lines, and was held back before it was read."""

    def use(self, redactor: Redactor | None, *, holds: bool = True) -> None:
        """Redact what follows with another redactor."""
        self.holds = holds
        self.unfinished = None if redactor is None else UnfinishedSecrets(redactor)

    def give(self, masks: Iterable[Mask]) -> None:
        """Set the masks of the next record."""
        self._given = {}
        for mask in masks:
            self._given.setdefault(mask.number, []).append(mask)

    def end_record(self) -> None:
        """Count from 0 again, for the next record."""
        self._number = 0
        if self._given:
            self._given = {}

    def take(self) -> tuple[Mask, ...]:
        """Return the masks of the last record."""
        made, self._made = self._made, []
        return tuple(made)

    def next_given(self) -> list[Mask] | None:
        """Count a text; return its masks if the journal has any."""
        number, self._number = self._number, self._number + 1
        return self._given.get(number) if self._given else None

    def made(self, mask: Mask) -> None:
        """Record what was done to the text that was counted last."""
        self._made.append(mask)

    @property
    def last_number(self) -> int:
        """The number of the text that was counted last."""
        return self._number - 1

    def remember(self, shown: str, masked: str) -> None:
        """Hide a text in whole facts: a secret that began in one line, where it was hidden, and ended in the next."""
        if len(self._joined) < MAX_JOINED:
            self._joined[shown] = masked

    # -- whole facts

    def applied(self, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a handler that redacts the strings of a fact before it handles it."""

        def handle_masked(fact: Any) -> None:
            handle(self.mask(fact))

        return handle_masked

    def mask(self, fact: Any) -> Any:
        """Return the fact with the secrets in its strings hidden."""
        if fact.__class__ is facts.InSubagent and isinstance(fact.fact, PIECES):
            return fact
        given = self.next_given()
        if self.unfinished is None and given is None:
            return fact
        replace = self._find if given is None else _as_given(given)
        return _Walk(replace).changed(fact)

    def _find(self, part: int, text: str) -> str:
        assert self.unfinished is not None  # noqa: S101  # checked by the caller
        redactor = self.unfinished.redactor
        data = _encode(text)
        spans = redactor.find_secrets(data)[0]
        hidden = _replacements(redactor, text, data, spans)
        for shown, masked in self._joined.items():
            at = text.find(shown)
            while at >= 0:
                hidden = [one for one in hidden if one[1] <= at or one[0] >= at + len(shown)]
                hidden.append((at, at + len(shown), masked))
                at = text.find(shown, at + len(shown))
        if not hidden:
            return text
        mask = Mask(self.last_number, part=part, hidden=tuple(sorted(hidden)))
        self.made(mask)
        return _hide(text, mask.hidden)


class MaskedText:
    """A text that arrives in fragments, with its secrets hidden. A fragment may be held back, in part or whole."""

    __slots__ = ("_held", "_last", "_masks", "_text")

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._held = ""
        self._last = ""
        """The placeholder that ends the shown text; empty if none does."""
        self._text = None if masks.unfinished is None else FragmentedText(masks.unfinished)

    def add(self, fragment: str) -> str:
        """Add a fragment; return the text that can be shown now."""
        given = self._masks.next_given()
        if self._text is not None:
            return self._find(fragment, is_end=not self._masks.holds)
        if given is not None:
            return self._apply(self._held + fragment, given[0])
        if not self._held:
            return fragment
        shown, self._held = self._held + fragment, ""
        return shown

    def flush(self) -> str:
        """Return the text that is held back: the text ends, or a person has to see it now."""
        if not self._held:
            return ""
        given = self._masks.next_given()
        if self._text is not None:
            return self._find("", is_end=True)
        if given is not None:
            return self._apply(self._held, given[0])
        shown, self._held = self._held, ""
        return "*" * len(shown) if self._masks.is_lost else shown

    def _find(self, fragment: str, *, is_end: bool) -> str:
        assert self._text is not None  # noqa: S101  # checked by the callers
        cut = self._text.add(_encode(fragment), is_end=is_end)
        if cut is None:  # nearly always
            self._last = ""
            return fragment
        masks, text, (kept, spans) = self._masks, self._held + fragment, cut
        data = _encode(text)
        count = kept if text.isascii() else len(_decode(data[:kept]))
        if not spans and count == len(text) and not self._held:
            self._end_with(text)
            return text
        assert masks.unfinished is not None  # noqa: S101  # as there is a text to find secrets in
        hidden = _replacements(masks.unfinished.redactor, text, data, spans)
        mask = Mask(masks.last_number, count, hidden=tuple(hidden))
        masks.made(mask)
        self._remember_joined(text, hidden)
        return self._apply(text, mask)

    def _remember_joined(self, text: str, hidden: list[Replacement]) -> None:
        if self._last and hidden and hidden[0][0] == 0:
            _, end, placeholder = hidden[0]
            self._masks.remember(self._last + text[:end], self._last + placeholder)

    def _apply(self, text: str, mask: Mask) -> str:
        self._held = text[mask.kept :]
        shown = _hide(text[: mask.kept], mask.hidden)
        if shown:
            self._end_with(shown)
        return shown

    def _end_with(self, shown: str) -> None:
        found = _PLACEHOLDER_AT_END.search(shown) if shown.endswith("*") else None
        self._last = found[0] if found is not None else ""


class _Walk:
    """Replaces the strings of a fact, which are counted in the order of its fields."""

    def __init__(self, replace: Callable[[int, str], str]) -> None:
        self._replace = replace
        self._count = -1

    def changed(self, value: Any) -> Any:
        """Return the value with its strings replaced; the same object if none was."""
        if isinstance(value, str):
            self._count += 1
            return self._replace(self._count, value) if value else value
        if isinstance(value, msgspec.Struct):
            return self._changed_struct(value)
        if isinstance(value, dict):
            pairs = [(self.changed(key), self.changed(item)) for key, item in value.items()]
            same = (new[0] is old[0] and new[1] is old[1] for new, old in zip(pairs, value.items(), strict=True))
            return value if all(same) else dict(pairs)
        if isinstance(value, list | tuple):
            items = [self.changed(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return items if isinstance(value, list) else tuple(items)
        return value

    def _changed_struct(self, value: msgspec.Struct) -> Any:
        changes = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if name not in _KEYS and not isinstance(item, int | None):
                new = self.changed(item)
                if new is not item:
                    changes[name] = new
        return msgspec.structs.replace(value, **changes) if changes else value


def _as_given(masks: Iterable[Mask]) -> Callable[[int, str], str]:
    by_part: Mapping[int, Mask] = {mask.part: mask for mask in masks}

    def replace(part: int, text: str) -> str:
        mask = by_part.get(part)
        return text if mask is None else _hide(text, mask.hidden)

    return replace


def _replacements(redactor: Redactor, text: str, data: bytes, spans: Iterable[tuple[int, int]]) -> list[Replacement]:
    hidden: list[Replacement] = []
    for start, end in spans:
        secret = data[start:end]
        placeholder = redactor.hide(secret, [(0, len(secret))]).decode()
        first, last = (start, end) if text.isascii() else (len(_decode(data[:start])), len(_decode(data[:end])))
        hidden.append((first, last, placeholder))
    return hidden


def _hide(text: str, hidden: Iterable[Replacement]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, placeholder in hidden:
        parts += (text[position:start], placeholder)
        position = end
    return "".join((*parts, text[position:]))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
