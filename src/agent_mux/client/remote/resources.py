"""The agents, models and profiles of a service, over HTTP.

The classes have the interfaces of `AgentMux.adapters`, `detector`, `models` and `profiles`. Codecs and command
lines of an adapter stay on the service's machine; the client receives its description only.
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
from agent_mux.client.remote.connection import ServiceConnection, fetch, path_of
from agent_mux.client.remote.responses import decode_response, incompatible_response, unsupported
from agent_mux.errors import AgentMuxError
from agent_mux.models.matching import CostEstimator, ModelMatch, similar_names
from agent_mux.models.registry import LISTING_TIMEOUT
from agent_mux.sdk.adapter import AgentCapabilities
from agent_mux.sdk.models import ModelCapabilities
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.options_json import fields_to_json
from agent_mux.settings.profiles import Profile, Scope, check_profile_name

_Models = tuple[ModelCapabilities, ...]
_Views = list[ProfileView]
_USE_LOCAL_CLIENT = "use `AgentMux` on the machine of the service"
_USE_PROFILES_COMMAND = "use `amux profiles` on the machine of the service"
_USE_REFRESH_COMMAND = "use `amux models refresh` on the machine of the service"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAdapter:
    """The description of an agent: the fields of `Adapter` that a service sends."""

    agent: str
    display_name: str
    aliases: tuple[str, ...]
    protocols: tuple[str, ...]
    """The names of the native protocols that the adapter reads."""
    min_version: str
    tested_version: str
    tested_versions: tuple[str, ...]
    capabilities: AgentCapabilities


class RemoteAdapters:
    """The adapters of a service: the interface of `AdapterRegistry`. Every call is a blocking request.

    In addition to the errors of `AdapterRegistry`, every method raises the error that the service returns, and
    UNAVAILABLE when it cannot be reached.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def names(self) -> list[str]:
        """Return the registered names, sorted. See `AdapterRegistry.names`."""
        return sorted(view.agent for view in self._views())

    @property
    def problems(self) -> dict[str, str]:
        """The registered names whose adapter the service could not load, and the reasons."""
        return {view.agent: view.problem or "" for view in self._views() if not _is_loaded(view)}

    def __iter__(self) -> Iterator[RemoteAdapter]:
        """Yield the description of every adapter that the service could load; `problems` has the others."""
        for view in self._views():
            if _is_loaded(view):
                yield self._adapter(view)

    def __contains__(self, name: str) -> bool:
        """Return whether the service has an agent with this name or alias."""
        try:
            self._capabilities(name)
        except AgentMuxError as error:
            if error.code != "AGENT_NOT_FOUND":
                raise
            return False
        return True

    def get(self, name: str) -> RemoteAdapter:
        """Return the description of the adapter with this name or alias.

        Raises AGENT_NOT_FOUND, with the most similar registered name.
        """
        capabilities = self._capabilities(name)
        return self._adapter(fetch(self._connection, AgentView, "agents", capabilities.agent), capabilities)

    def register(self, adapter: Any) -> NoReturn:  # noqa: ARG002  # the signature of AdapterRegistry
        """Raise `CapabilityError`: the adapters of a service are the packages installed on its machine."""
        raise unsupported("registering adapters", "install their package on its machine")

    def unregister(self, name: str) -> NoReturn:  # noqa: ARG002  # the signature of AdapterRegistry
        """Raise `CapabilityError`: the adapters of a service are the packages installed on its machine."""
        raise unsupported("removing adapters", "remove their package on its machine")

    def _views(self) -> list[AgentView]:
        found: list[AgentView] = fetch(self._connection, list[AgentView], "agents")
        return found

    def _adapter(self, view: AgentView, capabilities: AgentCapabilities | None = None) -> RemoteAdapter:
        return RemoteAdapter(
            agent=view.agent,
            display_name=view.display_name or view.agent,
            aliases=tuple(view.aliases or ()),
            protocols=tuple(view.protocols or ()),
            min_version=view.min_version or "",
            tested_version=view.tested_version or "",
            tested_versions=tuple(view.tested_versions or ()),
            capabilities=capabilities or self._capabilities(view.agent),
        )

    def _capabilities(self, name: str) -> AgentCapabilities:
        capabilities = fetch(self._connection, dict[str, Any], "agents", name, "capabilities")
        try:
            return capabilities_from_json(capabilities)
        except msgspec.ValidationError as error:
            raise incompatible_response(error) from error


class RemoteDetector:
    """Detects agents on the machine of a service: the interface of `Detector`."""

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection
        self._must_refresh = False

    async def detect(self, agent: str) -> DetectedAgent:
        """Return whether and in which version an agent is installed. See `Detector.detect`."""
        if self._must_refresh:
            await self.detect_all()
        return detected_from_view(await to_thread.run_sync(fetch, self._connection, AgentView, "agents", agent))

    def forget(self) -> None:
        """Let the service detect its agents again at the next call. The token needs the scope `run` for that."""
        self._must_refresh = True

    async def detect_all(self) -> list[DetectedAgent]:
        """Return the same for every registered agent, sorted by name. See `Detector.detect_all`."""
        method = "POST" if self._must_refresh else "GET"
        request = partial(self._connection.request_blocking, method, path_of("detect"), is_idempotent=True)
        found = decode_response(await to_thread.run_sync(request), list[DetectedView])
        self._must_refresh = False
        return [detected_from_view(view) for view in found]


def _is_loaded(view: AgentView) -> bool:
    return view.protocols is not msgspec.UNSET


class RemoteModels(CostEstimator):
    """The model registry of a service: the interface of `Models`. Every call is a blocking request.

    In addition to the errors of `Models`, every method raises the error that the service returns, and UNAVAILABLE when
    it cannot be reached. Methods that concern files of the service's machine raise `CapabilityError`.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection
        self.adapters = RemoteAdapters(connection)

    def list(self, agent: str | None = None) -> _Models:
        """Return the models of one agent, or of all agents with each name once. See `Models.list`."""
        if agent is not None:
            return _models(fetch(self._connection, list[ModelView], "models", agent))
        offered = (model for models in self.catalog().values() for model in models)
        return tuple({model.model_id: model for model in offered}.values())

    def catalog(self) -> dict[str, _Models]:
        """Return the known models by agent. See `Models.catalog`."""
        found: dict[str, list[ModelView]] = {}
        for view in fetch(self._connection, list[ModelView], "models"):
            found.setdefault(view.agent, []).append(view)
        return {agent: _models(views) for agent, views in found.items()}

    def get(self, agent: str, model: str) -> ModelCapabilities:
        """Return the model with this name or alias. See `Models.get`."""
        try:
            return model_from_view(self._view(agent, model))
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            raise AgentMuxError("VALIDATION_ERROR", error.message) from error

    def validate(self, agent: str, model: str) -> ModelMatch:
        """Check whether a name belongs to a model of this agent. See `Models.validate`.

        Suggestions are chosen from `list`; the service may know further models, which the error of `get` suggests.
        """
        try:
            view = self._view(agent, model)
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            return ModelMatch(name=model, status="unknown", suggestions=similar_names(self.list(agent), model))
        successor = view.successor if view.deprecated else None
        return ModelMatch(name=model, status=view.status or "ok", model=model_from_view(view), successor=successor)

    def default(self, agent: str) -> NoReturn:  # noqa: ARG002  # here and below: the signatures of Models
        """Raise `CapabilityError`: the service does not report the default model of an adapter."""
        raise unsupported("reporting the default model of an agent", _USE_LOCAL_CLIENT)

    def current(self, agent: str, *, project: Path | None = None) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the current model is in configuration files of the service's machine."""
        raise unsupported("reporting the current model of an agent", _USE_LOCAL_CLIENT)

    def refresh(self, agent: str, *, timeout: float = LISTING_TIMEOUT) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the service does not list the models of an agent again on request."""
        raise unsupported("refreshing the models of an agent", _USE_REFRESH_COMMAND)

    def can_refresh(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`, as `refresh` does."""
        raise unsupported("refreshing the models of an agent", _USE_REFRESH_COMMAND)

    def is_listed_by_agent(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the service does not report the source of its models."""
        raise unsupported("reporting the source of an agent's models", _USE_LOCAL_CLIENT)

    def last_updated(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the service does not report the age of its models."""
        raise unsupported("reporting when models were listed", _USE_LOCAL_CLIENT)

    def _view(self, agent: str, model: str) -> ModelView:
        found: ModelView = fetch(self._connection, ModelView, "models", agent, model)
        return found


def _models(views: Iterable[ModelView]) -> _Models:
    return tuple(map(model_from_view, views))


class RemoteProfiles:
    """The profiles of a service: the global ones and those of the directory that it runs in.

    It has the interface of `Profiles`. Every call is a blocking request. In addition to the errors of `Profiles`, every
    method raises the error that the service returns, and UNAVAILABLE when it cannot be reached. Secrets of MCP servers
    are masked in the answers; a run at the service that names the profile receives them.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(self) -> "list[Profile]":
        """Return all profiles, sorted by name. Raises CONFIG_ERROR when one cannot be used."""
        return [profile_from_view(view) for view in self._views()]

    def names(self) -> tuple[str, ...]:
        """Return the names of all profiles, sorted."""
        return tuple(sorted(view.name for view in self._views()))

    def get(self, name: str, *, scope: Scope | None = None) -> Profile:
        """Return one profile. See `Profiles.get`.

        Raises `CapabilityError` for one scope of a profile that exists in both: the service only sends them merged.
        """
        found = profile_from_view(fetch(self._connection, ProfileView, "profiles", check_profile_name(name)))
        if scope is None or set(found.paths) == {scope}:
            return found
        if scope not in found.paths:
            raise AgentMuxError("PROFILE_NOT_FOUND", f"no profile is named {name!r} in the {scope} directory")
        raise unsupported("reading one of two scopes of a profile", "omit `scope` to get both, merged")

    def set(self, name: str, fields: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """Write a profile and return its path on the service's machine. See `Profiles.set`.

        Raises `CapabilityError` without `replace=True`: a service replaces whole profiles only.
        """
        return self.set_keys(name, fields_to_json(fields), scope=scope, replace=replace)

    def set_keys(self, name: str, values: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """Write a profile from the keys and values of its file, otherwise as `set`."""
        path = path_of("profiles", check_profile_name(name), scope=scope)
        if not replace:
            raise unsupported("changing a part of a profile", "pass the whole profile with `replace=True`")
        return self._change("PUT", path, dict(values))

    def delete(self, name: str, *, scope: Scope | None = None) -> Path:
        """Delete a profile from one scope and return the path that it had. See `Profiles.delete`."""
        return self._change("DELETE", path_of("profiles", check_profile_name(name), scope=scope))

    def apply(self, name: str, options: RunOptions) -> NoReturn:  # noqa: ARG002  # here and below: the signatures of Profiles
        """Raise `CapabilityError`: the secrets of a profile stay at the service."""
        raise unsupported("applying a profile locally", "name it in the options of the run: `profile=`")

    def make_default(self, name: str | None, *, scope: Scope = "project") -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the default profile is in a configuration file of the service's machine."""
        raise unsupported("choosing the default profile", _USE_PROFILES_COMMAND)

    def named_by(self, name: str) -> NoReturn:  # noqa: ARG002
        """Raise `CapabilityError`: the service does not report its configuration files."""
        raise unsupported("reporting which files name a profile", _USE_PROFILES_COMMAND)

    @property
    def has_project(self) -> NoReturn:
        """Raise `CapabilityError`: the service does not report whether it runs in a project."""
        raise unsupported("reporting whether it runs in a project", _USE_PROFILES_COMMAND)

    def _views(self) -> _Views:
        found: _Views = fetch(self._connection, _Views, "profiles")
        return found

    def _change(self, method: str, path: str, payload: Any = None) -> Path:
        body = self._connection.request_blocking(method, path, payload)
        changed: ProfileChanged = decode_response(body, ProfileChanged)
        return Path(changed.path)
