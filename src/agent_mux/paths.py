"""Where agent-mux keeps its own files. Nothing here touches the disk. Source: run API, section 1 (storage)."""

import os
from pathlib import Path


def config_dir() -> Path:
    """The global directory: `$AGENT_MUX_CONFIG_DIR`, else `~/.agent-mux`."""
    named = os.environ.get("AGENT_MUX_CONFIG_DIR")
    return Path(named).expanduser() if named else Path.home() / ".agent-mux"
