"""CONTRIBUTING.md: the places that its recipes name exist, and its links and anchors are valid."""

import re
from pathlib import Path

import pytest
from tests.unit.contributing.recipes import PAGE, ROOT, article, paths_on_page
from tests.unit.test_docs import slugs_of

KINDS = ("event", "fact", "agent", "command", "route", "option")
TEXT = PAGE.read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_places_of_a_recipe_exist(kind: str) -> None:
    paths = paths_on_page(kind)
    assert paths
    assert [path for path in paths if not (ROOT / path.replace("<agent>", "claude")).exists()] == []


def test_every_recipe_has_a_test() -> None:
    titles = re.findall(r"^### Add (an? \w+)$", TEXT, re.MULTILINE)
    assert titles == [f"{article(kind)} {kind}" for kind in KINDS]
    assert all((Path(__file__).parent / f"test_{kind}_recipe.py").is_file() for kind in KINDS)


def test_links_have_targets_and_anchors() -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", TEXT):
        page = ROOT / target if target else PAGE
        assert page.exists(), target
        assert not anchor or anchor in slugs_of(page), anchor
