"""The agents of a service: what `AdapterRegistry` and `Detector` tell, over HTTP.

What an adapter can do (its codecs, how it starts its agent) stays where the agent is. What it says of itself is told.


The models of the agents of a service: as `agent_mux.models.registry`, over HTTP.


The profiles of a service: as `agent_mux.settings.profiles`, over HTTP.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from anyio import to_thread

from agent_mux.agents.detection import DetectedAgent
from agent_mux.api.agents import AgentView, DetectedView, capabilities_from_json, detected_from_view
from agent_mux.api.models import ModelView, model_from_view
from agent_mux.api.profiles import ProfileChanged, ProfileView, profile_from_view
from agent_mux.client.remote.asking import answer, path_of, refused
from agent_mux.client.remote.connection import Line, decoded
from agent_mux.errors import AgentMuxError
from agent_mux.models.matching import CostEstimator, ModelMatch, similar_names
from agent_mux.models.registry import LISTING_TIMEOUT
from agent_mux.sdk.adapter import AgentCapabilities
from agent_mux.sdk.models import ModelCapabilities
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.options_json import fields_to_json
from agent_mux.settings.profiles import Profile, Scope, check_profile_name


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
            return capabilities_from_json(told)
        except msgspec.ValidationError as error:
            strange = f"the service answered what this version cannot read: {error}"
            raise AgentMuxError("UNAVAILABLE", strange) from error


class RemoteDetector:
    """What `AgentMux.detector` finds there: on the machine of the service."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line
        self._is_fresh_wanted = False

    async def detect(self, agent: str) -> DetectedAgent:
        """Look for one agent. As `Detector.detect`."""
        if self._is_fresh_wanted:
            await self.detect_all()
        return detected_from_view(await to_thread.run_sync(answer, self._line, AgentView, "agents", agent))

    def forget(self) -> None:
        """Look anew the next time: for that, the token needs the scope `run`."""
        self._is_fresh_wanted = True

    async def detect_all(self) -> list[DetectedAgent]:
        """Look for every agent. Sorted by name. As `Detector.detect_all`."""
        method = "POST" if self._is_fresh_wanted else "GET"
        ask = partial(self._line.ask_blocking, method, path_of("detect"), again=True)
        found = decoded(await to_thread.run_sync(ask), list[DetectedView])
        self._is_fresh_wanted = False
        return [detected_from_view(view) for view in found]


def _is_loaded(view: AgentView) -> bool:
    return view.protocols is not msgspec.UNSET


_Models = tuple[ModelCapabilities, ...]
_THERE = "use `AgentMux` on the machine of the service"


class RemoteModels(CostEstimator):
    """What `AgentMux.models` is there. Blocking; every call asks the service. Raises what the service says, too."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line
        self.adapters = RemoteAdapters(line)

    def list(self, agent: str | None = None) -> _Models:
        """The models that an agent offers, or all agents, each name once. As `Models.list`."""
        if agent is not None:
            return _models(answer(self._line, list[ModelView], "models", agent))
        offered = (model for models in self.catalog().values() for model in models)
        return tuple({model.model_id: model for model in offered}.values())

    def catalog(self) -> dict[str, _Models]:
        """The models of every agent of which some are known. As `Models.catalog`."""
        found: dict[str, list[ModelView]] = {}
        for view in answer(self._line, list[ModelView], "models"):
            found.setdefault(view.agent, []).append(view)
        return {agent: _models(views) for agent, views in found.items()}

    def get(self, agent: str, model: str) -> ModelCapabilities:
        """The model that a name means. As `Models.get`."""
        try:
            return model_from_view(self._view(agent, model))
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            raise AgentMuxError("VALIDATION_ERROR", error.message) from error

    def validate(self, agent: str, model: str) -> ModelMatch:
        """Whether a name is that of a model of this agent, and which. As `Models.validate`.

        Suggestions are made of what `list` has: the service may know more, and says so in the error of `get`.
        """
        try:
            view = self._view(agent, model)
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            return ModelMatch(name=model, status="unknown", suggestions=similar_names(self.list(agent), model))
        successor = view.successor if view.deprecated else None
        return ModelMatch(name=model, status=view.status or "ok", model=model_from_view(view), successor=successor)

    def default(self, agent: str) -> NoReturn:  # noqa: ARG002  # here and below: the parameters are as there
        """Refused: the service does not tell what an adapter chooses."""
        raise refused("telling the default model of an agent", _THERE)

    def current(self, agent: str, *, project: Path | None = None) -> NoReturn:  # noqa: ARG002
        """Refused: it is in files of that machine."""
        raise refused("telling the current model of an agent", _THERE)

    def refresh(self, agent: str, *, timeout: float = LISTING_TIMEOUT) -> NoReturn:  # noqa: ARG002
        """Refused: the service does not ask agents for their models."""
        raise refused("asking an agent for its models", "use `amux models refresh` on the machine of the service")

    def can_refresh(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `refresh`."""
        raise refused("asking agents for their models", "use `amux models refresh` on the machine of the service")

    def is_listed_by_agent(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused: the service does not tell where what it knows is from."""
        raise refused("telling who listed the models of an agent", _THERE)

    def last_updated(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `is_listed_by_agent`."""
        raise refused("telling when models were listed", _THERE)

    def _view(self, agent: str, model: str) -> ModelView:
        found: ModelView = answer(self._line, ModelView, "models", agent, model)
        return found


def _models(views: Iterable[ModelView]) -> _Models:
    return tuple(map(model_from_view, views))


_Views = list[ProfileView]
_PROFILES_THERE = "use `amux profiles` on the machine of the service"


class RemoteProfiles:
    """What `AgentMux.profiles` is there: of the directory that the service runs in, and the global ones.

    Blocking; every call asks the service, and raises what it says, too. Secrets of MCP servers are masked in what is
    told: a run at the service that names the profile has them.
    """

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line

    def list(self) -> "list[Profile]":
        """All of them, by name. Raises CONFIG_ERROR for one that cannot be used."""
        return [profile_from_view(view) for view in self._views()]

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(view.name for view in self._views()))

    def get(self, name: str, *, scope: Scope | None = None) -> Profile:
        """One profile. As `Profiles.get`; refused for one scope of a profile that is in both places."""
        found = profile_from_view(answer(self._line, ProfileView, "profiles", check_profile_name(name)))
        if scope is None or set(found.paths) == {scope}:
            return found
        if scope not in found.paths:
            raise AgentMuxError("PROFILE_NOT_FOUND", f"no profile is named {name!r} in the {scope} directory")
        raise refused("telling one of two places of a profile", "leave `scope` out: both come together")

    def set(self, name: str, fields: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """Make a profile. As `Profiles.set`, but for `replace`, which has to be said; returns its path there."""
        return self.set_keys(name, fields_to_json(fields), scope=scope, replace=replace)

    def set_keys(self, name: str, told: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """As `set`, with keys and values as they stand in the file."""
        path = path_of("profiles", check_profile_name(name), scope=scope)
        if not replace:
            raise refused("changing a part of a profile", "say all of it, with `replace=True`")
        return self._changed("PUT", path, dict(told))

    def delete(self, name: str, *, scope: Scope | None = None) -> Path:
        """Remove a profile from one place. As `Profiles.delete`."""
        return self._changed("DELETE", path_of("profiles", check_profile_name(name), scope=scope))

    def apply(self, name: str, options: RunOptions) -> NoReturn:  # noqa: ARG002  # here and below: as there
        """Refused: the secrets of a profile stay with the service."""
        raise refused("applying a profile here", "name it in the options of the run: `profile=`")

    def make_default(self, name: str | None, *, scope: Scope = "project") -> NoReturn:  # noqa: ARG002
        """Refused: it is in a file of that machine."""
        raise refused("choosing the default profile", _PROFILES_THERE)

    def named_by(self, name: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `make_default`."""
        raise refused("telling which files name a profile", _PROFILES_THERE)

    @property
    def has_project(self) -> NoReturn:
        """Refused: the service does not tell."""
        raise refused("telling whether it is in a project", _PROFILES_THERE)

    def _views(self) -> _Views:
        found: _Views = answer(self._line, _Views, "profiles")
        return found

    def _changed(self, method: str, path: str, told: Any = None) -> Path:
        changed: ProfileChanged = decoded(self._line.ask_blocking(method, path, told), ProfileChanged)
        return Path(changed.path)
