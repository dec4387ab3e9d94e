"""The fast suite applies the checks of robustness to some recordings of each agent, the other checks to all."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

CHECKS_OF_ROBUSTNESS = {
    "test_chunks_do_not_matter",
    "test_is_tolerant",
    "test_prefixes_conform",
    "test_torn_lines_conform",
}
EVERY = 6
"""One in so many recordings is in the fast suite."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and getattr(item, "originalname", "") in CHECKS_OF_ROBUSTNESS:
            item.add_marker(pytest.mark.sampled(EVERY))
