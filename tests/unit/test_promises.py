"""Promises of the how-to pages: each sentence with `<!-- promise: ID -->` has tests marked `promise("ID")`."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_PAGE = re.compile(r"<!-- promise: ([a-z-]+) -->")
IN_TEST = re.compile(r'@pytest\.mark\.promise\("([a-z-]+)"\)')


def find_ids(pattern: re.Pattern[str], files: Iterator[Path]) -> dict[str, list[str]]:
    """Return the files in which each id occurs."""
    found: dict[str, list[str]] = {}
    for file in files:
        for promise in pattern.findall(file.read_text(encoding="utf-8")):
            found.setdefault(promise, []).append(str(file.relative_to(ROOT)))
    return found


def test_every_promise_has_a_test_and_every_marked_test_a_promise() -> None:
    promised = find_ids(IN_PAGE, (ROOT / "docs").rglob("*.md"))
    pinned = find_ids(IN_TEST, (ROOT / "tests").rglob("test_*.py"))
    assert promised, "no page has a promise with an id"
    assert {name: pages for name, pages in promised.items() if name not in pinned} == {}, "promises without a test"
    assert {name: files for name, files in pinned.items() if name not in promised} == {}, "tests without their promise"
    assert {name: pages for name, pages in promised.items() if len(pages) > 1} == {}, "one id for two promises"
