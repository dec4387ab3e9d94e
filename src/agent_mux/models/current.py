"""Which model a run would use that names none, and who says so. Source: run API, section 1 (option precedence)."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import Setting
from agent_mux.settings.resolver import FROM_CLIENT, ResolvedOptions

PROFILES = "profiles"
Origin = Literal["profile", "client", "project config", "global config", "agent config", "adapter", "agent"]
"""Who says so, the one that counts most first. `agent`: nobody; the agent chooses for itself."""


class CurrentModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The model of a run that names none."""

    model: str | None
    """None: the agent chooses, and tells when it starts."""
    source: Origin
    path: str | None = None
    """The file that says so, if one does."""


def current_model(
    adapter: Adapter, settled: ResolvedOptions, config_dir: Path, configured: Callable[[str], Setting | None]
) -> CurrentModel:
    """The model of a run of this agent that names none.

    `settled` is such a run; `config_dir` the global directory of agent-mux; `configured` tells what an agent's
    own files say.
    """
    if settled.options.model is not None:
        return _preferred(settled.options.model, settled.sources.get("model", FROM_CLIENT), config_dir)
    said = configured(adapter.agent)
    if said is not None:
        return CurrentModel(model=str(said.value), source="agent config", path=str(said.path))
    if adapter.default_model is not None:
        return CurrentModel(model=adapter.default_model, source="adapter")
    return CurrentModel(model=None, source="agent")


def _preferred(model: str, source: str, config_dir: Path) -> CurrentModel:
    if source == FROM_CLIENT:
        return CurrentModel(model=model, source="client")
    folder = Path(source).parent
    origin: Origin = "global config" if folder == config_dir else "project config"
    return CurrentModel(model=model, source="profile" if folder.name == PROFILES else origin, path=source)
