"""What a run is to do, once everybody who may say something about it has said it. Source: run API, section 1.

Per call over profile over client over the project's `config.json` over the global one. In a file, what is said for the
run's agent goes before what is said for all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_mux._util.paths import project_dir
from agent_mux.errors import AgentMuxError
from agent_mux.journal.run_index import INDEX
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.config import FILE, MuxConfig, read_config
from agent_mux.settings.json_files import FileCache, read_object
from agent_mux.settings.layers import Layer, MergedLayers, fields_from_keywords, merge, options_from_fields
from agent_mux.settings.profiles import Profile, Profiles, profiles_of

FROM_CALL, FROM_CLIENT = "the call", "the client"
_TELLING = ("command", "mcp_servers", "policy")
"""What starts programs or decides what is allowed: it is told when a project's files say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions:
    """Options with nothing left open. `AgentMux.run` takes them as they are."""

    options: RunOptions
    sources: Mapping[str, str] = field(default_factory=dict)
    """Who said a field: `the call`, `the client`, or the path of a file. Fields that nobody said are not in it."""
    warnings: tuple[str, ...] = ()
    """What a project says that a person wants to know, one sentence each."""
    project: Path | None = None
    """The `.agent-mux` of the project that the run belongs to."""
    index: Path | None = None
    """The file that the run is written into at its end: of the project, or else the global one. None: it is not."""


class OptionsResolver:
    """What holds for the runs of one client. Files are looked at when a run is settled, and read when they changed."""

    def __init__(
        self, client: Mapping[str, Any], adapters: AdapterRegistry, *, config_dir: Path, project_config_dir: Path | None
    ) -> None:
        """`client`: fields of `RunOptions`; `project_config_dir`: instead of looking for the project of a run."""
        self._client = fields_from_keywords(client)
        self._adapters = adapters
        self._config_dir = config_dir
        self._named = project_config_dir
        self._files = FileCache(read_config)
        self._profile_files = FileCache(read_object)

    def project_of(self, cwd: Any = None) -> Path | None:
        """The `.agent-mux` of the project that a directory is in; default: the current directory."""
        try:
            return project_dir(cwd, named=self._named)
        except TypeError:  # no directory at all; the checks of the options say so
            return None

    def profiles(self, cwd: Any = None) -> Profiles:
        """The profiles that a run in this directory can have."""
        return profiles_of(self._config_dir, lambda: self.project_of(cwd), self._profile_files)

    def settle(self, said: Mapping[str, Any]) -> ResolvedOptions:
        """Everything that is said about a run. `said`: the fields that the call says.

        Raises CONFIG_ERROR for a file that cannot be used, PROFILE_NOT_FOUND, and AGENT_NOT_FOUND for an agent that a
        file names.
        """
        project = self.project_of(said.get("cwd"))
        files = [self._files.of(place / FILE) for place in (project, self._config_dir) if place is not None]
        call = Layer(FROM_CALL, said)
        named = merge([call, *(Layer(str(file.path), {"profile": file.profile}) for file in files)])
        profile = self._profile(named, said.get("cwd"))
        layers = [call]
        layers += [profile.layer()] if profile is not None else []
        layers.append(Layer(FROM_CLIENT, self._client))
        general = merge([*layers, *(Layer(str(file.path), file.said) for file in files)])
        agent = self._agent(general.said.get("agent"), general.sources.get("agent", FROM_CALL))
        for file in files:
            layers += [Layer(str(file.path), self._of_agent(file, agent)), Layer(str(file.path), file.said)]
        merged = merge(layers)
        options = options_from_fields({**merged.said, "profile": None if profile is None else profile.name})
        return ResolvedOptions(
            options=options,
            sources={**merged.sources, **named.sources},
            warnings=(*_warnings(merged, project), *self._misspelt(files)),
            project=project,
            index=None if options.journal is False else self._index(project, files),
        )

    def _index(self, project: Path | None, files: list[MuxConfig]) -> Path | None:
        wanted = next((file.run_index for file in files if file.run_index is not None), True)
        # A project that was named need not be there, and is not made for this.
        is_there = project is not None and os.path.isdir(project)  # noqa: PTH112  # or may not be asked
        place = project if is_there and project is not None else self._config_dir
        return place / INDEX if wanted else None

    def _profile(self, named: MergedLayers, cwd: Any) -> Profile | None:
        name, source = named.said.get("profile"), named.sources.get("profile", FROM_CALL)
        if not name:
            return None
        try:
            return self.profiles(cwd).get(name)
        except AgentMuxError as error:
            raise error if source == FROM_CALL else _told_by(error, Path(source), "profile") from error

    def _agent(self, name: Any, source: str) -> str:
        """Its registered name, where it has one: a call that names none that there is is told so later."""
        if not isinstance(name, str) or not name:
            return ""
        if name in self._adapters:
            return self._adapters.get(name).agent
        if source in {FROM_CALL, FROM_CLIENT}:
            return name
        try:
            return self._adapters.get(name).agent
        except AgentMuxError as error:
            raise _told_by(error, Path(source), "agent") from error

    def _of_agent(self, file: MuxConfig, agent: str) -> Mapping[str, Any]:
        names = (agent, *self._adapters.get(agent).aliases) if agent in self._adapters else (agent,)
        return next((file.agents[name] for name in names if name in file.agents), {})

    def _misspelt(self, files: list[MuxConfig]) -> list[str]:
        """An agent that is not here is none of our business, but for one that was meant to be another."""
        known = self._adapters.names()
        close = {
            (file.path, name): get_close_matches(name, known, n=1, cutoff=0.8)
            for file in files
            for name in file.agents
            if name not in known
        }
        return [
            f"{path} has settings of {name!r}; did you mean {one!r}?"
            for (path, name), found in close.items()
            for one in found
        ]


def _told_by(error: AgentMuxError, path: Path, what: str) -> AgentMuxError:
    return AgentMuxError(error.code, f"{error.message} (the {what} is named in {path})")


def _warnings(merged: MergedLayers, project: Path | None) -> tuple[str, ...]:
    said, sources = merged
    telling = [name for name in _TELLING if said.get(name)]
    telling += ["approval_mode"] if said.get("approval_mode") == "yolo" else []
    return tuple(
        f"{name} is as {sources[name]} says; files of a project may come from somebody else"
        for name in telling
        if project is not None and Path(sources[name]).is_relative_to(project)
    )
