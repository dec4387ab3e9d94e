"""Reading, validating and changing the agents' own configuration. See docs/spec/run-api.md, section 7."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from agent_mux.agents.config.changes import ConfigFileChange, change_file
from agent_mux.agents.config.own_config import CONFIG, OWN
from agent_mux.agents.config.schema import ConfigProblem, config_schema, find_problems
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import (
    AgentConfig,
    ConfigField,
    ConfigFile,
    ConfigSetting,
    Scope,
    effective_files,
    file_to_change,
    read_document,
)
from agent_mux.sdk.documents import FieldPath, open_document, parse_field, with_field, without_field
from agent_mux.sdk.documents.document import MISSING, DocumentError, value_at


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A file that an agent reads, whether or not it exists."""

    scope: Scope
    """Whether the file belongs to the user (`global`), the project, or the project's local settings."""
    path: Path
    """Absolute path of the file."""
    exists: bool
    """Whether there is such a file."""
    data: dict[str, Any]
    """Content of the file; may contain secrets. Empty for a file that does not exist."""


class AgentConfigs:
    """The agents' own configuration files. Changes preserve everything else in a file. Blocking.

    Nothing is cached between calls. The name `amux` stands for agent-mux's own configuration.
    """

    def __init__(self, installations: InstallationResolver | None = None) -> None:
        """Use these installations; default: those that this process finds."""
        self._installations = installations if installations is not None else InstallationResolver()

    def sources(self, agent: str, scope: Scope | None = None) -> list[ConfigSource]:
        """Return the files that the agent reads, by ascending precedence. Raises CAPABILITY_ERROR, CONFIG_ERROR."""
        return list(self._read(self._config_of(agent), scope))

    def get(self, agent: str, *, scope: Scope | None = None) -> dict[str, Any]:
        """Return the merged content of all files. May contain secrets. Raises like `sources`."""
        return reduce(_merge, (source.data for source in self.sources(agent, scope)), {})

    def get_field(self, agent: str, field: str, *, scope: Scope | None = None) -> ConfigSetting | None:
        """Return one value, and the file with the highest precedence that sets it; None if no file does.

        A table is merged from all files. Raises like `sources`, and VALIDATION_ERROR for an invalid name.
        """
        path = self._field_path(field)
        sources = [source for source in self.sources(agent, scope) if value_at(source.data, path) is not MISSING]
        if not sources:
            return None
        merged: dict[str, Any] = reduce(_merge, (source.data for source in sources), {})
        return ConfigSetting(value_at(merged, path), sources[-1].scope, sources[-1].path)

    def set_field(
        self, agent: str, field: str, value: Any, *, scope: Scope = "global", dry_run: bool = False
    ) -> ConfigFileChange:
        """Set one field. Raises like `set`."""
        return self._change(agent, {self._field_path(field): value}, scope, dry_run=dry_run)

    def set(
        self, agent: str, values: Mapping[str, Any], *, scope: Scope = "global", dry_run: bool = False
    ) -> ConfigFileChange:
        """Set several fields in one step.

        Raises:
            ValidationError: An invalid name, or a value that is not allowed for a known field.
            AgentMuxError: CAPABILITY_ERROR, CONFIG_ERROR, CONFIG_LOCK_ERROR. Nothing was written.
        """
        paths = {self._field_path(name): value for name, value in values.items()}
        return self._change(agent, paths, scope, dry_run=dry_run)

    def unset_field(
        self, agent: str, field: str, *, scope: Scope = "global", dry_run: bool = False
    ) -> ConfigFileChange:
        """Remove a field from the file of the scope with the highest precedence that sets it. Raises like `set`."""
        path = self._field_path(field)
        config = self._config_of(agent)
        file, file_path = self._file_setting(config, scope, path) or self._file_to_change(config, agent, scope)
        return change_file(
            file_path, file.format, lambda text: without_field(text, file.format, path),
            private=scope == "global", dry_run=dry_run,
        )  # fmt: skip

    def schema(self, agent: str) -> dict[str, Any]:
        """Return a JSON Schema of the known fields; it allows other fields."""
        config = self._config_of(agent)
        return config_schema(
            "agent-mux" if agent == OWN else self._installations.adapters.get(agent).display_name, config
        )

    def fields(self, agent: str) -> Mapping[str, ConfigField]:
        """Return the known fields, by name."""
        return self._config_of(agent).fields

    def validate(self, agent: str) -> list[ConfigProblem]:
        """Return the problems of the files: invalid syntax, and values that are not allowed for known fields."""
        config, found = self._config_of(agent), []
        for scope, path, file in self._files(config):
            try:
                document = read_document(path, file.format)
            except AgentMuxError as error:
                found.append(ConfigProblem(scope, path, None, error.message))
                continue
            data = {} if document is None else document.data()
            problems = find_problems(config, scope, path, data)
            found += problems or _check(config, scope, path, data)
        return found

    def model(self, agent: str) -> ConfigSetting | None:
        """Return the model that the files set; None if they set none, or cannot set one."""
        config = self._installations.adapters.get(agent).installation().config
        if config is None or config.model is None:
            return None
        last = None
        for source in self._read(config):
            name = config.model.read(source.data)
            last = ConfigSetting(name, source.scope, source.path) if name is not None else last
        return last

    def set_model(self, agent: str, model: str, *, scope: Scope = "global", dry_run: bool = False) -> ConfigFileChange:
        """Set the model that the agent uses. Raises like `set`."""
        config = self._config_of(agent)
        if config.model is None:
            raise CapabilityError(self._installations.adapters.get(agent).agent, "a model in its configuration")
        file, path = self._file_to_change(config, agent, scope)
        document = read_document(path, file.format)
        try:
            values = config.model.write(model, {} if document is None else document.data())
        except ValueError as error:
            raise ValidationError([FieldError("model", model, str(error))]) from error
        return self._change(agent, values, scope, dry_run=dry_run)

    def _change(self, agent: str, values: Mapping[FieldPath, Any], scope: Scope, *, dry_run: bool) -> ConfigFileChange:
        config = self._config_of(agent)
        file, file_path = self._file_to_change(config, agent, scope)
        if config.written is not None:
            values = {path: config.written(path, value) for path, value in values.items()}

        def change(text: str) -> str:
            for path, value in values.items():
                text = with_field(text, file.format, path, value)
            if config.check is not None:
                config.check(file_path, open_document(text, file.format).data())
            return text

        problems = [
            problem
            for path, value in values.items()
            for problem in _field_problems(config, scope, file_path, path, value)
        ]
        if problems:
            raise ValidationError([FieldError(one.field or "", one.value, one.message) for one in problems])
        return change_file(file_path, file.format, change, private=scope == "global", dry_run=dry_run)

    def _file_to_change(self, config: AgentConfig, agent: str, scope: Scope) -> tuple[ConfigFile, Path]:
        found = file_to_change(config.files, self._installations.paths(), scope)
        if found is None:
            scopes = ", ".join(dict.fromkeys(file.scope for file in config.files))
            raise CapabilityError(agent, f"configuration for the scope {scope!r}", hint=f"it has: {scopes}")
        return found

    def _file_setting(self, config: AgentConfig, scope: Scope, field: FieldPath) -> tuple[ConfigFile, Path] | None:
        """Return the file of a scope with the highest precedence that sets a field, or None."""
        last = None
        for file, path in effective_files(config.files, self._installations.paths()):
            document = read_document(path, file.format) if file.scope == scope else None
            if document is not None and value_at(document.data(), field) is not MISSING:
                last = file, path
        return last

    def _read(self, config: AgentConfig, scope: Scope | None = None) -> Iterator[ConfigSource]:
        for file_scope, path, file in self._files(config):
            if scope in {None, file_scope}:
                document = read_document(path, file.format)
                yield ConfigSource(file_scope, path, document is not None, {} if document is None else document.data())

    def _files(self, config: AgentConfig) -> Iterator[tuple[Scope, Path, ConfigFile]]:
        for file, path in effective_files(config.files, self._installations.paths()):
            yield file.scope, path, file

    def _config_of(self, agent: str) -> AgentConfig:
        if agent == OWN:
            return CONFIG
        return self._installations.find(agent, lambda parts: parts.config, "configuration through agent-mux")[1]

    def _field_path(self, field: str) -> FieldPath:
        try:
            return parse_field(field)
        except DocumentError as error:
            raise ValidationError([FieldError("field", field, "a dotted name, as in permissions.allow")]) from error


def _field_problems(config: AgentConfig, scope: Scope, path: Path, field: FieldPath, value: Any) -> list[ConfigProblem]:
    data = value
    for part in reversed(field):
        data = {part: data}
    return find_problems(config, scope, path, data)


def _check(config: AgentConfig, scope: Scope, path: Path, data: Mapping[str, Any]) -> list[ConfigProblem]:
    """Return the problem that the adapter's own check reports, if any."""
    try:
        if config.check is not None and data:
            config.check(path, data)
    except AgentMuxError as error:
        return [ConfigProblem(scope, path, None, error.message)]
    return []


def _merge(first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables recursively; values of the second win."""
    merged = dict(first)
    for key, value in second.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
