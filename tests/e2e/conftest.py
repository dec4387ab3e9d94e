"""Real CLIs, offline.

python -m agent_mux.testing.provision
python -m agent_mux.testing.offline -- pytest tests/e2e
"""

import os
from pathlib import Path

import pytest

from agent_mux.testing.offline import ALLOW_NETWORK, is_offline

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing here runs where a CLI could reach anybody."""
    allowed = is_offline() or bool(os.environ.get(ALLOW_NETWORK))
    reason = f"would have the network; run it under agent_mux.testing.offline, or set {ALLOW_NETWORK}=1"
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.e2e)
            if not allowed:
                item.add_marker(pytest.mark.skip(reason=reason))
