"""The contract: an agent's own commands for plugins (which may be called extensions or packages there)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Words = tuple[str, ...]
"""Behind the agent's program. Values are bound to their flags, or stand behind `--` where the agent allows that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin, as the agent lists it."""

    name: str
    version: str | None = None
    enabled: bool | None = None
    """None: it does not say."""
    source: str | None = None
    """Where it came from."""
    description: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommands:
    """What the agent can be told. None: it cannot do that."""

    word: str = "plugin"
    """What the agent calls them."""
    list: Words | None = None
    parse: Callable[[str], tuple[Plugin, ...]] | None = None
    """What `list` printed. Raises `ValueError`, half a sentence, for what it cannot read."""
    is_on_stderr: bool = False
    """The lists are printed on standard error, perhaps among other lines; else on standard output."""
    install: Callable[[str], Words] | None = None
    uninstall: Callable[[str], Words] | None = None
    update: Callable[[str | None], Words] | None = None
    """One of them, or (None) all; raises `ValueError` where only the other is possible."""
    search: Callable[[str], Words] | None = None
    parse_search: Callable[[str], tuple[Plugin, ...]] | None = None
    """As `parse`, for `search`."""
    search_lists_all: bool = False
    """It lists all there are; which of them are meant is found out here."""
    environment: dict[str, str] = field(default_factory=dict)
    """Set for these commands, so that they ask nothing and colour nothing."""
