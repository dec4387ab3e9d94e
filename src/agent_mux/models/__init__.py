"""The model registry: sizes, abilities and prices of models. See docs/spec/run-api.md, section 5.

This module exports what adapters use: `Adapter.models` returns the models of an agent, `Adapter.model_listing`
describes the agent's own command that lists them. The registry itself is `agent_mux.models.registry`.
"""

from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price, cost_in_usd, find_price, prices_of

__all__ = ["ModelCapabilities", "ModelListing", "Price", "cost_in_usd", "find_price", "prices_of"]
