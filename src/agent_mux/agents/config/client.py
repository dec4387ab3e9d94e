"""The configuration of agents, on one object. Source: run API, section 7."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from agent_mux.agents.config.changes import FileChange, change_file
from agent_mux.agents.config.own_config import CONFIG, OWN
from agent_mux.agents.config.schema import ConfigProblem, config_schema, find_problems
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import (
    AgentConfig,
    ConfigFile,
    Field,
    Scope,
    Setting,
    file_to_change,
    files_that_count,
    read_document,
)
from agent_mux.sdk.documents import FieldPath, open_document, parse_field, with_field, without_field
from agent_mux.sdk.documents.document import MISSING, DocumentError, value_at


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A file that an agent reads, or would."""

    scope: Scope
    path: Path
    exists: bool
    data: dict[str, Any]


class AgentConfigs:
    """The agents' own files: read, and changed so that whatever is not touched stays. Blocking.

    Nothing is remembered between calls: what is returned is what the files say now. Under the name `amux` it is our
    own configuration.
    """

    def __init__(self, homes: InstallationResolver | None = None) -> None:
        """Take where to look; default: what this process would find."""
        self._homes = homes if homes is not None else InstallationResolver()

    def sources(self, agent: str, scope: Scope | None = None) -> list[ConfigSource]:
        """Every file that counts, the later ones win. Raises CAPABILITY_ERROR, CONFIG_ERROR."""
        return list(self._read(self._config_of(agent), scope))

    def get(self, agent: str, *, scope: Scope | None = None) -> dict[str, Any]:
        """What they say together, tables merged. May hold secrets. Errors as for `sources`."""
        return reduce(_merged, (source.data for source in self.sources(agent, scope)), {})

    def get_field(self, agent: str, field: str, *, scope: Scope | None = None) -> Setting | None:
        """One value, and the file that has the last word on it; None where nobody says it.

        A table is merged of all files; the last of them that says anything of it is named. Errors as for `sources`;
        VALIDATION_ERROR for a name of no field.
        """
        path = self._path_of(field)
        said = [source for source in self.sources(agent, scope) if value_at(source.data, path) is not MISSING]
        if not said:
            return None
        merged: dict[str, Any] = reduce(_merged, (source.data for source in said), {})
        return Setting(value_at(merged, path), said[-1].scope, said[-1].path)

    def set_field(
        self, agent: str, field: str, value: Any, *, scope: Scope = "global", dry_run: bool = False
    ) -> FileChange:
        """Say something else, or something new. As `set`."""
        return self._change(agent, {self._path_of(field): value}, scope, dry_run=dry_run)

    def set(
        self, agent: str, values: Mapping[str, Any], *, scope: Scope = "global", dry_run: bool = False
    ) -> FileChange:
        """Set several fields in one step.

        Raises:
            ValidationError: A name of no field, or a value that a known field cannot have.
            AgentMuxError: CAPABILITY_ERROR, CONFIG_ERROR, CONFIG_LOCK_ERROR. Then nothing was written.
        """
        paths = {self._path_of(name): value for name, value in values.items()}
        return self._change(agent, paths, scope, dry_run=dry_run)

    def unset_field(self, agent: str, field: str, *, scope: Scope = "global", dry_run: bool = False) -> FileChange:
        """Say it no more, in the last file of the scope that says it. Errors as for `set`."""
        path = self._path_of(field)
        config = self._config_of(agent)
        file, place = self._file_saying(config, scope, path) or self._file_for(config, agent, scope)
        return change_file(
            place, file.format, lambda text: without_field(text, file.format, path),
            private=scope == "global", dry_run=dry_run,
        )  # fmt: skip

    def schema(self, agent: str) -> dict[str, Any]:
        """JSON Schema of the fields that are known; others are possible."""
        config = self._config_of(agent)
        return config_schema("agent-mux" if agent == OWN else self._homes.adapters.get(agent).display_name, config)

    def fields(self, agent: str) -> Mapping[str, Field]:
        """The fields that are known, by name."""
        return self._config_of(agent).fields

    def validate(self, agent: str) -> list[ConfigProblem]:
        """What is wrong with the files: texts that cannot be read, values that known fields cannot have."""
        config, found = self._config_of(agent), []
        for scope, path, file in self._places(config):
            try:
                document = read_document(path, file.format)
            except AgentMuxError as error:
                found.append(ConfigProblem(scope, path, None, error.message))
                continue
            data = {} if document is None else document.data()
            wrong = find_problems(config, scope, path, data)
            found += wrong or _others(config, scope, path, data)
        return found

    def model(self, agent: str) -> Setting | None:
        """The model that the files name; None where they name none, or the agent's files cannot."""
        config = self._homes.adapters.get(agent).home().config
        if config is None or config.model is None:
            return None
        last = None
        for source in self._read(config):
            name = config.model.read(source.data)
            last = Setting(name, source.scope, source.path) if name is not None else last
        return last

    def set_model(self, agent: str, model: str, *, scope: Scope = "global", dry_run: bool = False) -> FileChange:
        """Let the agent use a model from now on. Errors as for `set`."""
        config = self._config_of(agent)
        if config.model is None:
            raise CapabilityError(self._homes.adapters.get(agent).agent, "a model in its configuration")
        file, place = self._file_for(config, agent, scope)
        document = read_document(place, file.format)
        try:
            values = config.model.write(model, {} if document is None else document.data())
        except ValueError as error:
            raise ValidationError([FieldError("model", model, str(error))]) from error
        return self._change(agent, values, scope, dry_run=dry_run)

    def _change(self, agent: str, values: Mapping[FieldPath, Any], scope: Scope, *, dry_run: bool) -> FileChange:
        config = self._config_of(agent)
        file, place = self._file_for(config, agent, scope)

        def changed(text: str) -> str:
            for path, value in values.items():
                text = with_field(text, file.format, path, value)
            if config.check is not None:
                config.check(place, open_document(text, file.format).data())
            return text

        wrong = [problem for path, value in values.items() for problem in _problems(config, scope, place, path, value)]
        if wrong:
            raise ValidationError([FieldError(problem.field or "", problem.value, problem.said) for problem in wrong])
        return change_file(place, file.format, changed, private=scope == "global", dry_run=dry_run)

    def _file_for(self, config: AgentConfig, agent: str, scope: Scope) -> tuple[ConfigFile, Path]:
        found = file_to_change(config.files, self._homes.place(), scope)
        if found is None:
            scopes = ", ".join(dict.fromkeys(file.scope for file in config.files))
            raise CapabilityError(agent, f"configuration for the scope {scope!r}", hint=f"it has: {scopes}")
        return found

    def _file_saying(self, config: AgentConfig, scope: Scope, field: FieldPath) -> tuple[ConfigFile, Path] | None:
        last = None
        for file, path in files_that_count(config.files, self._homes.place()):
            document = read_document(path, file.format) if file.scope == scope else None
            if document is not None and value_at(document.data(), field) is not MISSING:
                last = file, path
        return last

    def _read(self, config: AgentConfig, scope: Scope | None = None) -> Iterator[ConfigSource]:
        for at, path, file in self._places(config):
            if scope in {None, at}:
                document = read_document(path, file.format)
                yield ConfigSource(at, path, document is not None, {} if document is None else document.data())

    def _places(self, config: AgentConfig) -> Iterator[tuple[Scope, Path, ConfigFile]]:
        for file, path in files_that_count(config.files, self._homes.place()):
            yield file.scope, path, file

    def _config_of(self, agent: str) -> AgentConfig:
        if agent == OWN:
            return CONFIG
        return self._homes.find(agent, lambda home: home.config, "configuration in files that are known")[1]

    def _path_of(self, field: str) -> FieldPath:
        try:
            return parse_field(field)
        except DocumentError as error:
            raise ValidationError([FieldError("field", field, "a dotted name, as in permissions.allow")]) from error


def _problems(config: AgentConfig, scope: Scope, place: Path, path: FieldPath, value: Any) -> list[ConfigProblem]:
    data = value
    for part in reversed(path):
        data = {part: data}
    return find_problems(config, scope, place, data)


def _others(config: AgentConfig, scope: Scope, path: Path, data: Mapping[str, Any]) -> list[ConfigProblem]:
    try:
        if config.check is not None and data:
            config.check(path, data)
    except AgentMuxError as error:
        return [ConfigProblem(scope, path, None, error.message)]
    return []


def _merged(first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        there = merged.get(key)
        merged[key] = _merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return merged
