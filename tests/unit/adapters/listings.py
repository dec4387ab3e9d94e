"""The model listings that the CLIs printed offline: in `listings/` beside the tests of an adapter."""

from pathlib import Path

import pytest

from agent_mux.sdk.models import ModelCapabilities
from agent_mux.sdk.registry import AdapterRegistry

HERE = Path(__file__).parent


def listed(agent: str, name: str) -> dict[str, ModelCapabilities]:
    """Return the models of a recorded listing by name."""
    return parsed(agent, (HERE / agent / "listings" / name).read_text("utf-8"))


def parsed(agent: str, printed: str) -> dict[str, ModelCapabilities]:
    """Return the models in printed text by name."""
    listing = AdapterRegistry().get(agent).model_listing
    assert listing is not None
    models = listing.parse(printed)
    named = {model.model_id: model for model in models}
    assert len(named) == len(models)
    return named


def assert_refused(agent: str, printed: str, reason: str) -> None:
    """Assert that parsing the text raises `ValueError` with this reason."""
    with pytest.raises(ValueError, match=reason):
        parsed(agent, printed)


def assert_truncated_listing_is_safe(agent: str, name: str) -> None:
    """Assert that a listing that is truncated anywhere raises `ValueError`, or yields at most one unlisted name."""
    whole = (HERE / agent / "listings" / name).read_text("utf-8")
    names = set(listed(agent, name))
    for length in range(0, len(whole), max(len(whole) // 200, 1)):
        try:
            found = parsed(agent, whole[:length])
        except ValueError:
            continue
        unlisted = set(found) - names
        assert len(unlisted) <= 1  # a truncated name
