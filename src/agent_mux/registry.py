"""The adapters that are known: found through entry points, built-in and third-party alike, or registered by hand."""

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import entry_points

from agent_mux.adapter import Adapter
from agent_mux.errors import AgentMuxError

GROUP = "agent_mux.adapters"


class AdapterRegistry:
    """Adapters by name. An adapter is imported when it is first asked for."""

    def __init__(self) -> None:
        self._points = {point.name: point for point in entry_points(group=GROUP)}
        self._adapters: dict[str, Adapter] = {}
        self._removed: set[str] = set()

    def register(self, adapter: Adapter) -> None:
        """Add an adapter, or replace the one with its name."""
        self._adapters[adapter.agent] = adapter
        self._removed.discard(adapter.agent)

    def unregister(self, name: str) -> None:
        """Forget an adapter. Raises AGENT_NOT_FOUND when there is none."""
        agent = self.get(name).agent
        self._adapters.pop(agent, None)
        self._removed.add(agent)

    def names(self) -> list[str]:
        """Registered names, sorted."""
        return sorted((set(self._points) | set(self._adapters)) - self._removed)

    def __iter__(self) -> Iterator[Adapter]:
        return (self.get(name) for name in self.names())

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def get(self, name: str) -> Adapter:
        """The adapter with this name or alias. Raises AGENT_NOT_FOUND, with the nearest name there is."""
        adapter = self._find(name)
        if adapter is not None:
            return adapter
        names = self.names()
        close = get_close_matches(name, [*names, *(alias for known in self for alias in known.aliases)], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}"
        raise AgentMuxError("AGENT_NOT_FOUND", f"no agent is named {name!r}; {hint}")

    def _find(self, name: str) -> Adapter | None:
        if name in self._removed:
            return None
        if name in self._adapters:
            return self._adapters[name]
        if name in self._points:
            return self._load(name)
        return next((adapter for adapter in self if name in adapter.aliases), None)

    def _load(self, name: str) -> Adapter:
        adapter = self._points[name].load()
        if not isinstance(adapter, Adapter):
            point = self._points[name]
            raise AgentMuxError("INTERNAL", f"the entry point {name} = {point.value} is not an Adapter")
        self._adapters[name] = adapter
        return adapter
