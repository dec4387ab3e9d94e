"""The contract: where an agent keeps its MCP servers, and how it writes one down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.options import McpServer
from agent_mux.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFiles:
    """The MCP servers of an agent."""

    files: tuple[ConfigFile, ...]
    """Their `table` holds the servers, by name. The later ones win; of a scope, the last one is written."""
    read: Callable[[str, Mapping[str, Any]], McpServer | None]
    """A server as the agent wrote it; None where it is none that can be understood."""
    write: Callable[[McpServer], dict[str, Any]]
    """A server as the agent wants it. Raises `ValueError`, half a sentence, for one that it cannot use."""
    is_enabled: Callable[[Mapping[str, Any]], bool] = lambda _: True
    is_switched_off: Callable[[Place, str], bool] = lambda _place, _name: False
    """By its name, in another place than where it is written down."""
