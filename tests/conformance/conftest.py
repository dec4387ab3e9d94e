"""The fast suite compares all recordings with their goldens."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and getattr(item, "originalname", "") == "test_matches_golden":
            item.add_marker(pytest.mark.all_cases)
