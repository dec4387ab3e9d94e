"""Names in a sentence are bounded, and the others are counted."""

import pytest

from agent_mux._util.listing import list_names


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_names_beyond_the_limit_are_counted(names: list[str], text: str) -> None:
    assert list_names(names, 2) == text
