"""The effective options of one run, resolved from all sources. See docs/spec/run-api.md, section 1.

Precedence: call, profile, client, the environment (`$AGENT_MUX_DEFAULT_AGENT`, `$AGENT_MUX_GRACE_PERIOD_MS`), the
project's `config.json`, the global `config.json`. Within a file, settings for the run's agent take precedence over
settings for all agents.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.paths import project_dir
from agent_mux._util.suggestions import closest_names
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.journal.run_index import INDEX
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.config import FILE, MuxConfig, read_config
from agent_mux.settings.json_files import FileCache, read_object
from agent_mux.settings.layers import (
    MERGED_FIELDS,
    Layer,
    MergedLayers,
    fields_from_keywords,
    merge,
    options_from_fields,
)
from agent_mux.settings.named_paths import Absolute, start_at, with_absolute_files, with_paths_of_caller
from agent_mux.settings.profiles import Profile, Profiles, profiles_of

FROM_CALL, FROM_CLIENT = "the call", "the client"
DEFAULT_AGENT_VARIABLE = "AGENT_MUX_DEFAULT_AGENT"
"""The environment variable with the agent of runs that name none."""
GRACE_PERIOD_VARIABLE = "AGENT_MUX_GRACE_PERIOD_MS"
"""The environment variable with the milliseconds from SIGTERM to SIGKILL, for runs that set no `grace_period`."""
_SENSITIVE = ("command", "mcp_servers", "policy", "extra_args", "native_options", "add_dirs", "allowed_tools")
"""Fields that start programs or decide what is allowed. A warning is given if a project's files set one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions(Checked):
    """The effective options of a run, accepted by `AgentMux.run` without being resolved again."""

    options: RunOptions
    """All options of the run, with their effective values."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The source of each field that was set: `the call`, `the client`, or the path of a file."""
    warnings: tuple[str, ...] = ()
    """Warnings about settings, one sentence each."""
    project: Path | None = None
    """The `.agent-mux` of the project that the run belongs to."""
    index: Path | None = None
    """The run index to which the run is added when it ends: the project's, or else the global one. None: no index."""


class OptionsResolver:
    """Resolves the options of the runs of one client. Files are checked for each run and read again if changed."""

    def __init__(
        self,
        client: Mapping[str, Any],
        adapters: AdapterRegistry,
        *,
        config_dir: Path,
        project_config_dir: Path | None,
        base_dir: Path | None = None,
    ) -> None:
        """Create a resolver for one client.

        Args:
            client: Fields of `RunOptions` set by the client.
            adapters: The registered adapters, to resolve agent names.
            config_dir: The global directory.
            project_config_dir: The `.agent-mux` of the project; None: found from the working directory of each run.
            base_dir: Where relative paths of calls start; None: in the current directory at the time of the call.
        """
        self._absolute = start_at(Path.cwd if base_dir is None else lambda: base_dir)
        self._client = fields_from_keywords(client)
        self._adapters = adapters
        self._config_dir = config_dir
        self._project_config_dir = project_config_dir
        self._configs = FileCache(read_config)
        self._profile_files = FileCache(read_object)

    def project_of(self, cwd: Any = None) -> Path | None:
        """Return the `.agent-mux` of the project that contains a directory (default: the current one), or None."""
        try:
            return project_dir(cwd, named=self._project_config_dir)
        except TypeError:  # not a path: reported when the options are validated
            return None

    def profiles(self, cwd: Any = None) -> Profiles:
        """Return the profiles available to a run in this directory."""
        return profiles_of(self._config_dir, lambda: self.project_of(cwd), self._profile_files)

    def resolve(self, fields: Mapping[str, Any]) -> ResolvedOptions:
        """Resolve the options of a run. `fields`: the fields set by the call.

        Raises CONFIG_ERROR for an unusable file, PROFILE_NOT_FOUND, and AGENT_NOT_FOUND for an agent that a file names.
        """
        project = self.project_of(fields.get("cwd"))
        configs = [self._configs.get(place / FILE) for place in (project, self._config_dir) if place is not None]
        call = Layer(FROM_CALL, fields)
        profile_name = merge([call, *(Layer(str(config.path), {"profile": config.profile}) for config in configs)])
        profile = self._find_profile(profile_name, fields.get("cwd"))
        layers = [call]
        layers += [profile.layer()] if profile is not None else []
        layers.append(Layer(FROM_CLIENT, self._client))
        layers += _environment_layers()
        for_all_agents = merge([*layers, *(Layer(str(config.path), config.options) for config in configs)])
        agent = self._resolve_agent(for_all_agents.fields.get("agent"), for_all_agents.sources.get("agent", FROM_CALL))
        for config in configs:
            path = str(config.path)
            layers += [Layer(path, self._agent_options(config, agent)), Layer(path, config.options)]
        merged = merge([self._with_absolute_paths(layer, agent) for layer in layers])
        options = options_from_fields({**merged.fields, "profile": None if profile is None else profile.name})
        return ResolvedOptions(
            options=options,
            sources={**merged.sources, **profile_name.sources},
            warnings=(
                *_project_warnings(merged, project),
                *self._misspelled_agents(configs),
                *(() if profile is None else profile.warnings),
                *(warning for config in configs for warning in config.warnings),
            ),
            project=project,
            index=None if options.journal is False else self._index_path(project, configs),
        )

    def _with_absolute_paths(self, layer: Layer, agent: str) -> Layer:
        """Return a layer whose relative paths start at the caller's directory, or at that of the layer's file."""
        found: dict[str, Any] = {}
        for name, value in layer.fields.items():
            parts = value.items() if name in MERGED_FIELDS and isinstance(value, Mapping) else ()
            for key, part in parts:
                absolute = self._absolute_in(layer.source_of(name, key))
                changed = with_absolute_files({name: {key: part}}, agent, self._adapters, absolute)
                found[name] = {**found.get(name, {}), **changed[name]}
            if not parts:
                absolute = self._absolute_in(layer.source_of(name))
                found |= with_absolute_files({name: value}, agent, self._adapters, absolute)
        if layer.source == FROM_CALL:
            found = with_paths_of_caller(found, self._absolute)
        return msgspec.structs.replace(layer, fields=found)

    def _absolute_in(self, source: str) -> Absolute:
        return start_at(lambda: Path(source).parent) if Path(source).is_absolute() else self._absolute

    def _index_path(self, project: Path | None, configs: list[MuxConfig]) -> Path | None:
        is_wanted = next((config.run_index for config in configs if config.run_index is not None), True)
        # A project directory that the client names may not exist; it is not created for the index.
        exists = project is not None and os.path.isdir(project)  # noqa: PTH112  # False if it may not be accessed
        directory = project if exists and project is not None else self._config_dir
        return directory / INDEX if is_wanted else None

    def _find_profile(self, named: MergedLayers, cwd: Any) -> Profile | None:
        name, source = named.fields.get("profile"), named.sources.get("profile", FROM_CALL)
        if not name:
            return None
        try:
            return self.profiles(cwd).get(name)
        except AgentMuxError as error:
            raise error if source == FROM_CALL else _with_source(error, Path(source), "profile") from error

    def _resolve_agent(self, name: Any, source: str) -> str:
        """Return the registered name of an agent; unknown names of a call or client are reported with the run."""
        if not isinstance(name, str) or not name:
            return ""
        if name in self._adapters:
            return self._adapters.get(name).agent
        if source in {FROM_CALL, FROM_CLIENT}:
            return name
        try:
            return self._adapters.get(name).agent
        except AgentMuxError as error:
            raise _with_source(error, Path(source), "agent") from error

    def _agent_options(self, config: MuxConfig, agent: str) -> Mapping[str, Any]:
        names = (agent, *self._adapters.get(agent).aliases) if agent in self._adapters else (agent,)
        return next((config.agents[name] for name in names if name in config.agents), {})

    def _misspelled_agents(self, configs: list[MuxConfig]) -> list[str]:
        """Warn of settings for unknown agents whose name is close to a known one; others may be installed elsewhere."""
        known = self._adapters.names()
        close = {
            (config.path, name): closest_names(name, known, similarity=0.8)
            for config in configs
            for name in config.agents
            if name not in known
        }
        return [
            f"{path} has settings of {name!r}; did you mean {match!r}?"
            for (path, name), matches in close.items()
            for match in matches
        ]


def _environment_layers() -> list[Layer]:
    """Return the layers of the environment: the variables that are set and not empty. Raises `ValidationError`."""
    agent = os.environ.get(DEFAULT_AGENT_VARIABLE, "").strip()
    grace = os.environ.get(GRACE_PERIOD_VARIABLE, "").strip()
    layers = [Layer(f"${DEFAULT_AGENT_VARIABLE}", {"agent": agent})] if agent else []
    return [*layers, Layer(f"${GRACE_PERIOD_VARIABLE}", {"grace_period": _seconds(grace)})] if grace else layers


def _seconds(milliseconds: str) -> float:
    if not (milliseconds.isascii() and milliseconds.isdecimal()):
        allowed = "a whole number of milliseconds, such as 5000"
        raise ValidationError([FieldError(f"${GRACE_PERIOD_VARIABLE}", milliseconds, allowed)])
    return int(milliseconds) / 1000


def _with_source(error: AgentMuxError, path: Path, field_name: str) -> AgentMuxError:
    return AgentMuxError(error.code, f"{error.message} (the {field_name} is named in {path})")


def _project_warnings(merged: MergedLayers, project: Path | None) -> tuple[str, ...]:
    """Warn of sensitive fields that the project's files set."""
    fields, sources = merged
    sensitive = [name for name in _SENSITIVE if fields.get(name)]
    sensitive += ["approval_mode"] if fields.get("approval_mode") == "yolo" else []
    return tuple(
        f"{name} is set by {sources[name]}; project files may come from an untrusted author"
        for name in sensitive
        if project is not None and Path(sources[name]).is_relative_to(project)
    )
