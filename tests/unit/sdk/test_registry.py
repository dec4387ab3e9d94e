"""The registry: entry points, registration in code, and packages that fail to load."""

import pytest
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry


def test_built_in_adapters_are_loaded_from_entry_points() -> None:
    registry = AdapterRegistry()
    assert {"claude", "codex", "replay"} <= set(registry.names())
    assert registry.get("claude").agent == "claude"
    assert registry.get("claude-code") is registry.get("claude")
    assert "claude" in registry


def test_unknown_name_raises_with_the_closest_name() -> None:
    with pytest.raises(AgentMuxError, match=r"no agent is named 'cluade'; did you mean 'claude'\?") as caught:
        AdapterRegistry().get("cluade")
    assert caught.value.code == "AGENT_NOT_FOUND"


def test_register_replaces_and_unregister_removes_an_adapter() -> None:
    registry = AdapterRegistry()
    adapter = scripted_adapter("")
    registry.register(adapter)
    assert registry.get("scripted") is adapter
    registry.unregister("scripted")
    assert "scripted" not in registry
    registry.register(adapter)
    assert "scripted" in registry.names()
    registry.unregister("claude")
    assert "claude" not in registry.names()
    with pytest.raises(AgentMuxError, match="no agent is named"):
        registry.unregister("nobody")


def test_broken_package_leaves_other_adapters_available() -> None:
    registry = AdapterRegistry()
    registry._points["broken"] = "agent_mux_no_such_module:ADAPTER"
    registry._points["wrong"] = "agent_mux._util.version:__version__"
    with pytest.raises(AgentMuxError, match="cannot be loaded"):
        registry.get("broken")
    assert registry.get("claude-code").agent == "claude"
    assert "claude" in [adapter.agent for adapter in registry]
    assert set(registry.problems) == {"broken", "wrong"}
