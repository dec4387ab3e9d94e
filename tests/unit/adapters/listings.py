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


def refuses(agent: str, printed: str, reason: str) -> None:
    """Assert that the text is refused with this reason."""
    with pytest.raises(ValueError, match=reason):
        parsed(agent, printed)


def survives_every_cut(agent: str, name: str) -> None:
    """Assert that a listing cut at any byte yields only listed models, or is refused."""
    whole = (HERE / agent / "listings" / name).read_text("utf-8")
    names = set(listed(agent, name))
    for length in range(0, len(whole), max(len(whole) // 200, 1)):
        try:
            found = parsed(agent, whole[:length])
        except ValueError:
            continue
        strange = set(found) - names
        assert len(strange) <= 1  # a name that is cut off
