"""The models that a real CLI lists, and the shipped snapshot of them."""

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS

from agent_mux.models.registry import Models
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelListing
from agent_mux_testing.live import DUMMY_KEY, KitContext, Say

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
"""With these variables, agents list the models of the providers; the keys are not verified."""
TIMEOUT = 120.0  # seconds; some programs unpack themselves first


def listing_of(live: LiveAgent) -> tuple[Adapter, ModelListing]:
    adapter = live.adapter
    if adapter.model_listing is None:
        pytest.skip(f"{live.agent} has no command that lists its models")
    return adapter, adapter.model_listing


@ALL_AGENTS
def test_models_are_listed(live: LiveAgent) -> None:
    """The listing contains the custom provider of the scripted model."""
    listing_of(live)
    live.script(live.answer(Say("Unused.")))
    models = Models(directory=live.config_directory, environ=live.launch.environment)
    offered = models.refresh(live.agent, timeout=TIMEOUT)
    assert offered
    assert all(model.model_id and model.provider for model in offered)
    assert models.is_listed_by_agent(live.agent)
    assert models.list(live.agent) == offered


@ALL_AGENTS
def test_shipped_models_match_the_listed_models(live: LiveAgent) -> None:
    adapter, listing = listing_of(live)
    if live.provisioned.version != adapter.tested_version:
        pytest.skip("the shipped snapshot is of another version")
    context = KitContext(url="", home=live.home, path=live.provisioned.path)
    program = {adapter.executable_variable: str(live.provisioned.program)}
    environ = context.minimal(**dict.fromkeys(KEYS, DUMMY_KEY), **program)
    offered = Models(directory=live.config_directory, environ=environ).refresh(live.agent, timeout=TIMEOUT)
    listed = {model.model_id for model in offered}
    shipped = {model.model_id for model in adapter.models()}
    if listing.is_complete:
        assert shipped - listed == set()
    else:
        assert listed - shipped == set()
    # Prices are found by the names that the agent lists.
    assert [model.model_id for model in offered if model.model_id in shipped and model.price is None] == []
