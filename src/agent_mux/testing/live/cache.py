"""Where provisioned CLIs live, and what their runs may share."""

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """`$AMUX_AGENT_CACHE`, else `~/.cache/agent-mux/agents`."""
    chosen = os.environ.get("AMUX_AGENT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "agent-mux" / "agents"
