"""The keyword arguments of the clients, for the blocking clients that pass them on. See `AgentMux` and `RemoteMux`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.sdk.option_fields import LocalDefaults, RemoteDefaults

if TYPE_CHECKING:
    from agent_mux.sdk.registry import AdapterRegistry


class AgentMuxArguments(LocalDefaults, total=False):
    """Keyword arguments of `AgentMux`, `BlockingAgentMux` and their subclasses."""

    default_agent: str | None
    default_model: str | None
    config_dir: str | Path | None
    project_config_dir: str | Path | None
    adapters: "AdapterRegistry | None"
    base_dir: str | Path | None
    max_concurrent_runs: int | None
    max_concurrent_runs_per_agent: int | Mapping[str, int] | None
    queue_limit: int | None
    control_sockets: bool


class RemoteMuxArguments(RemoteDefaults, total=False):
    """The arguments of `RemoteMux`, without its URL."""

    token: str | None
    default_agent: str | None
    default_model: str | None
    request_timeout: float
    reconnect_for: float
