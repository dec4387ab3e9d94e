"""Citations of our specifications in source files: each names a section that exists, and nothing else is cited."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_mux.contract import RULES

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"
SOURCES = sorted(path for folder in ("src", "adapters") for path in (ROOT / folder).rglob("*.py"))
NUMBER = r"\d+(?:\.\d+)*"
CITATION = re.compile(rf"docs/spec/([\w-]+\.md)(?:, sections? ({NUMBER}(?:(?:,? (?:and|to)|,) {NUMBER})*))?")
HEADING = re.compile(rf"^#+ ({NUMBER})\.? ")
RULE = re.compile(r"^(\d+)\. ")
OUTSIDE = re.compile(
    r"\b(?:run API, sections?|agent-events spec|event spec|loop spec|hooks seed|zidane|phi-core|native-formats)\b"
    r"|Source: section",
    re.IGNORECASE,
)
"""Names of documents that are not in this repository."""


def sections_of(text: str) -> set[str]:
    """Return the numbers of all headings, and of the rules of sections without subsections: `25.3` and `25.3.1`."""
    headings: set[str] = set()
    rules: set[tuple[str, str]] = set()
    section = ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            section = heading[1]
            headings.add(section)
        elif section and (rule := RULE.match(line)):
            rules.add((section, rule[1]))
    divided = {heading.rpartition(".")[0] for heading in headings}
    return headings | {f"{section}.{number}" for section, number in rules if section not in divided}


def citations_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield page and section of each citation. The section is empty where a citation names the page alone."""
    joined = re.sub(r"\s+(?:#:? )?", " ", text)  # a citation may be wrapped
    for page, numbers in CITATION.findall(joined):
        yield from ((page, number) for number in re.findall(NUMBER, numbers) or [""])


def test_sections_include_headings_and_rules() -> None:
    text = "# T\n\n## 2. Options\n\n1. First.\n2. Second.\n\n### 2.1 Fields\n\n1. Rule,\n   wrapped.\n"
    assert sections_of(text) == {"2", "2.1", "2.1.1"}


def test_wrapped_and_plural_citations_are_found() -> None:
    text = "See docs/spec/events.md,\n    section 25.3.1. docs/spec/run-api.md, sections 1 and 6. docs/spec/events.md"
    assert list(citations_in(text)) == [
        ("events.md", "25.3.1"),
        ("run-api.md", "1"),
        ("run-api.md", "6"),
        ("events.md", ""),
    ]


@pytest.mark.parametrize("page", ["events.md", "run-api.md"])
def test_specification_has_no_duplicate_sections(page: str) -> None:
    numbers = [match[1] for line in (SPEC / page).read_text("utf-8").splitlines() if (match := HEADING.match(line))]
    assert len(numbers) > 9
    assert len(numbers) == len(set(numbers))


def test_every_cited_section_exists() -> None:
    known = {path.name: sections_of(path.read_text("utf-8")) | {""} for path in SPEC.glob("*.md")}
    missing = [
        f"{path.relative_to(ROOT)}: docs/spec/{page}, section {number}"
        for path in SOURCES
        for page, number in citations_in(path.read_text("utf-8"))
        if number not in known.get(page, set())
    ]
    assert not missing, "\n".join(missing)


def test_every_rule_of_the_checker_is_in_the_event_specification() -> None:
    assert set(RULES) <= sections_of((SPEC / "events.md").read_text("utf-8"))


@pytest.mark.slow
def test_no_source_file_cites_documents_outside_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if OUTSIDE.search(line)
    ]
    assert not found, f"{len(found)} lines\n" + "\n".join(found[:40])
