"""What the CLIs printed when asked for their models, offline: in `listings/` beside the tests of an adapter."""

from pathlib import Path

import pytest

from agent_mux.models import ModelCapabilities
from agent_mux.registry import AdapterRegistry

HERE = Path(__file__).parent


def listed(agent: str, name: str) -> dict[str, ModelCapabilities]:
    """The models in one of the listings, by their names."""
    return parsed(agent, (HERE / agent / "listings" / name).read_text("utf-8"))


def parsed(agent: str, printed: str) -> dict[str, ModelCapabilities]:
    """The models that are in this, by their names."""
    listing = AdapterRegistry().get(agent).model_listing
    assert listing is not None
    models = listing.parse(printed)
    named = {model.model_id: model for model in models}
    assert len(named) == len(models)
    return named


def refuses(agent: str, printed: str, reason: str) -> None:
    """This cannot be understood."""
    with pytest.raises(ValueError, match=reason):
        parsed(agent, printed)


def survives_every_cut(agent: str, name: str) -> None:
    """However much of it is missing, what is read is what was said, or it is refused."""
    whole = (HERE / agent / "listings" / name).read_text("utf-8")
    names = set(listed(agent, name))
    for length in range(0, len(whole), max(len(whole) // 200, 1)):
        try:
            found = parsed(agent, whole[:length])
        except ValueError:
            continue
        strange = set(found) - names
        assert len(strange) <= 1  # a name that is cut off
