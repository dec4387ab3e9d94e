"""What is known of models: sizes, abilities, prices. Source: run API, section 5.

What is imported here is the contract with adapters: `Adapter.models` lists the models of an agent,
`Adapter.model_listing` says how the agent itself lists them. The registry of all of it is `agent_mux.models.registry`.
"""

from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price, cost_in_usd, find_price, prices_of

__all__ = ["ModelCapabilities", "ModelListing", "Price", "cost_in_usd", "find_price", "prices_of"]
