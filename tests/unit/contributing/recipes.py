"""Recipes of CONTRIBUTING.md: the places that must know each member of a kind, and the report of missing places."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "CONTRIBUTING.md"


@dataclass(frozen=True, slots=True)
class Place:
    """One place that must know every member."""

    path: str
    """File or folder, as the recipe on the page names it; `<agent>` stands for the member."""
    what: str
    """What the place must have, as a phrase for the report."""
    knows: Callable[[str], bool]
    """Returns whether the place knows the member with this name."""


def check_places(kind: str, members: Iterable[str], places: Sequence[Place]) -> None:
    """Fail with a report of the places that do not know a member."""
    lines = []
    for member in members:
        missing = [place for place in places if not place.knows(member)]
        if missing:
            lines.append(f"{kind} `{member}` is missing in {len(missing)} of {len(places)} places:")
            lines += [f"  {place.path.replace('<agent>', member)}: {place.what}" for place in missing]
    if lines:
        lines.append(f'See "Add {article(kind)} {kind}" in CONTRIBUTING.md.')
        pytest.fail("\n".join(lines), pytrace=False)


def article(noun: str) -> str:
    """Return the indefinite article of a noun."""
    return "an" if noun[0] in "aeiou" else "a"


def paths_on_page(kind: str) -> list[str]:
    """Return the paths in the first column of the table of a recipe."""
    section = re.search(
        rf"^### Add {article(kind)} {kind}\n(.*?)(?=^##)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert section is not None, f"CONTRIBUTING.md has no section for adding {article(kind)} {kind}"
    rows = re.findall(r"^\| ([^|]+) \|", section[1], re.MULTILINE)
    return [path for row in rows for path in re.findall(r"`([^`]+)`", row)]


@cache
def text_of(path: str, pattern: str = "*.py") -> str:
    """Return the text of a file, or of all files in a folder that match the pattern."""
    target = ROOT / path
    files = [target] if target.is_file() else sorted(target.rglob(pattern))
    return "\n".join(file.read_text("utf-8") for file in files)


def mentions(path: str, word: str, pattern: str = "*.py") -> bool:
    """Return whether a file, or a file in a folder, contains the word."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text_of(path, pattern)) is not None
