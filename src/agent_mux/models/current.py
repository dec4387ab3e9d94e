"""Which model a run would use that names none, and who says so. Source: run API, section 1 (option precedence)."""

from typing import Literal

import msgspec

from agent_mux.adapter import Adapter

Origin = Literal["profile", "project config", "global config", "agent config", "adapter", "agent"]
"""Who says so, the one that counts most first. `agent`: nobody; the agent chooses for itself."""


class CurrentModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The model of a run that names none."""

    model: str | None
    """None: the agent chooses, and tells when it starts."""
    source: Origin


def current_model(adapter: Adapter) -> CurrentModel:
    """The model of a run of this agent that names none."""
    if adapter.default_model is not None:
        return CurrentModel(model=adapter.default_model, source="adapter")
    return CurrentModel(model=None, source="agent")
