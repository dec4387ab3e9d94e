"""Which model a run would use that names none, and who says so. Source: run API, section 1 (option precedence)."""

from collections.abc import Callable
from typing import Literal

import msgspec

from agent_mux.adapter import Adapter
from agent_mux.config.client import Setting

Origin = Literal["profile", "project config", "global config", "agent config", "adapter", "agent"]
"""Who says so, the one that counts most first. `agent`: nobody; the agent chooses for itself."""


class CurrentModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The model of a run that names none."""

    model: str | None
    """None: the agent chooses, and tells when it starts."""
    source: Origin
    path: str | None = None
    """The file that says so, if one does."""


def current_model(adapter: Adapter, configured: Callable[[str], Setting | None]) -> CurrentModel:
    """The model of a run of this agent that names none.

    `configured` tells what an agent's own files say. Profiles and the configuration of agent-mux itself come before
    them, once they may name a model.
    """
    said = configured(adapter.agent)
    if said is not None:
        return CurrentModel(model=str(said.value), source="agent config", path=str(said.path))
    if adapter.default_model is not None:
        return CurrentModel(model=adapter.default_model, source="adapter")
    return CurrentModel(model=None, source="agent")
