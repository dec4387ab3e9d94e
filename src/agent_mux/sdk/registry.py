"""Registry of adapters: loaded from entry points, built-in and third-party alike, or registered in code."""

from collections.abc import Iterator

from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.entry_points import load_entry_point, read_entry_points

GROUP = "agent_mux.adapters"


class AdapterRegistry:
    """Adapters by name and alias; each is imported on first use."""

    def __init__(self) -> None:
        self._points = dict(read_entry_points(GROUP))
        self._adapters: dict[str, Adapter] = {}
        self._removed: set[str] = set()
        self.problems: dict[str, str] = {}
        """Names whose adapter failed to load, with the error."""

    def register(self, adapter: Adapter) -> None:
        """Add an adapter; replaces one with the same name."""
        self._adapters[adapter.agent] = adapter
        self._removed.discard(adapter.agent)

    def unregister(self, name: str) -> None:
        """Remove an adapter. Raises AGENT_NOT_FOUND if there is none."""
        agent = self.get(name).agent
        self._adapters.pop(agent, None)
        self._removed.add(agent)

    def names(self) -> list[str]:
        """Return the registered names, sorted."""
        return sorted((set(self._points) | set(self._adapters)) - self._removed)

    def __iter__(self) -> Iterator[Adapter]:
        """Yield every adapter that can be loaded; `problems` lists the others."""
        for name in self.names():
            try:
                yield self.get(name)
            except AgentMuxError as error:
                self.problems[name] = str(error)

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def get(self, name: str) -> Adapter:
        """Return the adapter with this name or alias. Raises AGENT_NOT_FOUND with the closest known name."""
        adapter = self._find(name)
        if adapter is not None:
            return adapter
        names = self.names()
        aliases = [alias for known in self for alias in known.aliases]
        hint = did_you_mean(name, [*names, *aliases], f"known: {', '.join(names) or 'none'}")
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
        point = self._points[name]
        try:
            adapter = load_entry_point(point)
        except Exception as error:
            # A third-party package may raise anything; the other adapters must stay available.
            message = f"the adapter {name!r} ({point}) cannot be loaded: {error!r}; reinstall or remove its package"
            raise AgentMuxError("INTERNAL", message) from error
        if not isinstance(adapter, Adapter):
            raise AgentMuxError("INTERNAL", f"the entry point {name} = {point} is not an Adapter")
        self._adapters[name] = adapter
        return adapter
