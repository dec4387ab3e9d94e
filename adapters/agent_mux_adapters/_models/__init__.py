"""Models that several agents offer, one `<provider>.toml` for each provider.

An adapter lists in its own `models.toml` which of them its agent accepts, and under which names (see `catalog.py`).
"""

from agent_mux_adapters._models.catalog import models_of, offered

__all__ = ["models_of", "offered"]
