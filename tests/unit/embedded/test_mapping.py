"""The mapping in docs/design/agent-loop.md is complete: its tests exist, and every hook and event is on the page."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from agent_loop.events import LoopEvent, ParallelEvent
from agent_loop.hooks import HOOKS

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "design" / "agent-loop.md").read_text("utf-8")
MAPPING = PAGE.split("## The mapping", 1)[1]
ROWS = [
    tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1])
    for line in MAPPING.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| specified feature"))
]
TESTS = re.compile(r"`([\w/]+\.py)::(test_\w+)`(?:<br>`([\w/]+\.py)::(test_\w+)`)*")
ID = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
SEEDS = ["agent-loop-spec", "hooks-middleware", "zidane-architecture", "phi-core-architecture"]


@cache
def named_in(file: str) -> frozenset[str]:
    """Return the names of the test functions in a file, without importing it."""
    root = HERE.parents[2] if file.startswith("tests/") else HERE
    tree = ast.parse((root / file).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_mapping_has_all_four_seeds() -> None:
    assert re.findall(r"^### `([\w-]+)`$", MAPPING, re.MULTILINE) == SEEDS
    assert len(ROWS) > 400


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_every_row_names_an_existing_test_or_the_reason_why_it_has_none(row: tuple[str, ...]) -> None:
    feature, _, test = row
    assert feature
    if test.startswith("never: "):
        return
    assert TESTS.fullmatch(test), f"{feature}: name a test, or say 'never: why'"
    for file, name in ID.findall(test):
        assert name in named_in(file), f"{feature}: there is no {name} in tests/unit/embedded/{file}"


def test_no_feature_stands_twice_in_one_section() -> None:
    for section in re.split(r"^####? .*$", MAPPING, flags=re.MULTILINE):
        features = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
        assert len(features) == len(set(features)), [each for each in features if features.count(each) > 1]


def test_every_hook_is_named_in_the_mapping_or_on_the_page() -> None:
    assert [name for name in HOOKS if f"`{name}`" not in MAPPING] == []


def test_every_event_is_named_on_the_page() -> None:
    assert [event.__name__ for event in get_args(LoopEvent | ParallelEvent) if f"`{event.__name__}`" not in PAGE] == []
