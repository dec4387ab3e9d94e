"""Every fact is known in all the places that the recipe "Add a fact" names."""

import re

from tests.unit.contributing.recipes import Place, check_places, paths_on_page, text_of

from agent_mux.assembler import StreamAssembler, StreamContext
from agent_mux.sdk import facts

CLASSES = {kind.__name__: kind for kind in facts.Fact.__subclasses__() if kind.__module__ == facts.__name__}
HANDLED = StreamAssembler(StreamContext(run_id="0" * 26, agent="wombat")).handlers
NEVER_AN_EVENT = {"Ignored"}
"""Facts that the normalizer counts and no event shows."""


def uses(path: str, fact: str) -> bool:
    """Return whether code in the folder names or creates the fact."""
    return re.search(rf"\bfacts\.{fact}\b|\b{fact}\(", text_of(path)) is not None


PLACES = (
    Place("src/agent_mux/sdk/facts.py", "the class, with a docstring", lambda name: bool(CLASSES[name].__doc__)),
    Place(
        "src/agent_mux/assembler/",
        "the handler that turns it into events, or NEVER_AN_EVENT in test_fact_recipe.py",
        lambda name: CLASSES[name] in HANDLED or name in NEVER_AN_EVENT,
    ),
    Place("adapters/agent_mux_adapters/", "a codec that returns it", lambda name: uses("adapters", name)),
    Place("tests/unit/", "a test that names it", lambda name: uses("tests/unit", name)),
)


def test_every_fact_is_known_in_every_place() -> None:
    check_places("fact", CLASSES, PLACES)


def test_recipe_names_the_places() -> None:
    assert paths_on_page("fact") == [place.path for place in PLACES]
