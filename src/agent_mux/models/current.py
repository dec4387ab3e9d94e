"""The model of a run that names none, and where it is set. See docs/spec/run-api.md, section 1."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import ConfigSetting
from agent_mux.settings.resolver import FROM_CLIENT, ResolvedOptions

PROFILES = "profiles"
Origin = Literal["profile", "client", "project config", "global config", "agent config", "adapter", "agent"]
"""Where the model is set, by descending precedence. `agent`: nowhere; the agent chooses."""


class CurrentModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The model of a run that names none."""

    model: str | None
    """None: the agent chooses a model and reports it when it starts."""
    source: Origin
    """What sets the model."""
    path: str | None = None
    """The file that sets the model, if there is one."""


def current_model(
    adapter: Adapter, resolved: ResolvedOptions, config_dir: Path, configured: Callable[[str], ConfigSetting | None]
) -> CurrentModel:
    """Return the model of a run of this agent that names none.

    Args:
        adapter: The adapter of the agent.
        resolved: The options of such a run.
        config_dir: The global directory of agent-mux.
        configured: Returns the model that the agent's own files set.
    """
    if resolved.options.model is not None:
        return _from_settings(resolved.options.model, resolved.sources.get("model", FROM_CLIENT), config_dir)
    setting = configured(adapter.agent)
    if setting is not None:
        return CurrentModel(model=str(setting.value), source="agent config", path=str(setting.path))
    if adapter.default_model is not None:
        return CurrentModel(model=adapter.default_model, source="adapter")
    return CurrentModel(model=None, source="agent")


def _from_settings(model: str, source: str, config_dir: Path) -> CurrentModel:
    if source == FROM_CLIENT:
        return CurrentModel(model=model, source="client")
    folder = Path(source).parent
    origin: Origin = "global config" if folder == config_dir else "project config"
    return CurrentModel(model=model, source="profile" if folder.name == PROFILES else origin, path=source)
