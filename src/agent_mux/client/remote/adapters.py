"""The agents of a service: what `AdapterRegistry` and `Detector` tell, over HTTP.

What an adapter can do (its codecs, how it starts its agent) stays where the agent is. What it says of itself is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import msgspec
from anyio import to_thread

from agent_mux.agents.detection import Detected
from agent_mux.api.agents import AgentView, DetectedView, capabilities_from, detected_from
from agent_mux.client.remote.asking import answer, path_of, refused
from agent_mux.client.remote.line import Line, decoded
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import AgentCapabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAdapter:
    """What an adapter says of its agent: the fields of `Adapter` that can be told."""

    agent: str
    display_name: str
    aliases: tuple[str, ...]
    protocols: tuple[str, ...]
    """The names of the native protocols that it reads."""
    min_version: str
    tested_version: str
    capabilities: AgentCapabilities


class RemoteAdapters:
    """What `AgentMux.adapters` is there. Blocking; every call asks the service. Raises what the service says, too."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line

    def names(self) -> list[str]:
        """Registered names, sorted. As `AdapterRegistry.names`."""
        return sorted(view.agent for view in self._views())

    @property
    def problems(self) -> dict[str, str]:
        """Registered names whose adapter could not be loaded there, and why."""
        return {view.agent: view.problem or "" for view in self._views() if not _is_loaded(view)}

    def __iter__(self) -> Iterator[RemoteAdapter]:
        """Every adapter that can be loaded; `problems` has the others."""
        for view in self._views():
            if _is_loaded(view):
                yield self._adapter(view)

    def __contains__(self, name: str) -> bool:
        """There is an agent with this name or alias."""
        try:
            self._capabilities(name)
        except AgentMuxError as error:
            if error.code != "AGENT_NOT_FOUND":
                raise
            return False
        return True

    def get(self, name: str) -> RemoteAdapter:
        """The adapter with this name or alias. Raises AGENT_NOT_FOUND, with the nearest name there is."""
        capabilities = self._capabilities(name)
        return self._adapter(answer(self._line, AgentView, "agents", capabilities.agent), capabilities)

    def register(self, adapter: Any) -> NoReturn:  # noqa: ARG002  # as there
        """Refused: a service has the adapters that are installed with it."""
        raise refused("registering adapters", "install their package on its machine")

    def unregister(self, name: str) -> NoReturn:  # noqa: ARG002  # as there
        """Refused, as `register`."""
        raise refused("removing adapters", "remove their package on its machine")

    def _views(self) -> list[AgentView]:
        found: list[AgentView] = answer(self._line, list[AgentView], "agents")
        return found

    def _adapter(self, view: AgentView, capabilities: AgentCapabilities | None = None) -> RemoteAdapter:
        return RemoteAdapter(
            agent=view.agent,
            display_name=view.display_name or view.agent,
            aliases=tuple(view.aliases or ()),
            protocols=tuple(view.protocols or ()),
            min_version=view.min_version or "",
            tested_version=view.tested_version or "",
            capabilities=capabilities or self._capabilities(view.agent),
        )

    def _capabilities(self, name: str) -> AgentCapabilities:
        told = answer(self._line, dict[str, Any], "agents", name, "capabilities")
        try:
            return capabilities_from(told)
        except msgspec.ValidationError as error:
            strange = f"the service answered what this version cannot read: {error}"
            raise AgentMuxError("UNAVAILABLE", strange) from error


class RemoteDetector:
    """What `AgentMux.detector` finds there: on the machine of the service."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line
        self._is_fresh_wanted = False

    async def detect(self, agent: str) -> Detected:
        """Look for one agent. As `Detector.detect`."""
        if self._is_fresh_wanted:
            await self.detect_all()
        return detected_from(await to_thread.run_sync(answer, self._line, AgentView, "agents", agent))

    def forget(self) -> None:
        """Look anew the next time: for that, the token needs the scope `run`."""
        self._is_fresh_wanted = True

    async def detect_all(self) -> list[Detected]:
        """Look for every agent. Sorted by name. As `Detector.detect_all`."""
        method = "POST" if self._is_fresh_wanted else "GET"
        ask = partial(self._line.ask_blocking, method, path_of("detect"), again=True)
        found = decoded(await to_thread.run_sync(ask), list[DetectedView])
        self._is_fresh_wanted = False
        return [detected_from(view) for view in found]


def _is_loaded(view: AgentView) -> bool:
    return view.protocols is not msgspec.UNSET
