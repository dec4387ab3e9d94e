"""Models that several agents offer, by who serves them: `<provider>.toml` beside this file.

An adapter says in its own `models.toml` whose models its agent takes, and by which names (`offers.py`).
"""

from agent_mux_adapters._models.catalog import models_of, offered

__all__ = ["models_of", "offered"]
