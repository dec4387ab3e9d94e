"""The MCP servers in agents' own configuration files: list, add, remove. See docs/spec/run-api.md, section 7."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_mux._util.suggestions import did_you_mean
from agent_mux.agents.config.changes import ConfigFileChange, change_file
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import AgentPaths, ConfigFile, Scope, effective_files, file_to_change, read_document
from agent_mux.sdk.documents import FieldPath, with_field, without_field
from agent_mux.sdk.documents.document import value_at
from agent_mux.sdk.installation import McpFiles
from agent_mux.sdk.options import McpServer, check_mcp_server


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """An MCP server in one of an agent's files."""

    agent: str
    """Registered name of the agent."""
    name: str
    """Name under which the agent lists the server."""
    scope: Scope
    """Whether the file belongs to the user (`global`), the project, or the project's local settings."""
    path: Path
    """Absolute path of the file."""
    server: McpServer | None
    """None: the entry is not understood."""
    enabled: bool = True
    """Whether the agent connects to the server."""
    wins: bool = True
    """Whether the agent uses this entry; False if another file overrides it with the same name, or with a problem."""
    problem: str | None = None
    """Why the agent does not use the file, for example because it does not trust the project."""


class McpServers:
    """The MCP servers in agents' files. Blocking; changes preserve everything else in a file."""

    def __init__(self, installations: InstallationResolver | None = None) -> None:
        """Use these installations; default: those that this process finds."""
        self._installations = installations if installations is not None else InstallationResolver()

    def list(self, agent: str, *, scope: Scope | None = None) -> list[StoredServer]:
        """Return all servers of an agent. Raises CAPABILITY_ERROR, CONFIG_ERROR for an unreadable file."""
        name, files = self._files_of(agent)
        found = [stored for stored in self._read(name, files) if scope in {None, stored.scope}]
        last = {stored.name: index for index, stored in enumerate(found) if stored.problem is None}
        return [replace(stored, wins=last.get(stored.name) == index) for index, stored in enumerate(found)]

    def add(  # one parameter for each option of the command
        self, agent: str, server: McpServer, *, scope: Scope = "global", force: bool = False, dry_run: bool = False
    ) -> ConfigFileChange:
        """Add a server to an agent's file.

        Args:
            agent: Name or alias.
            server: The server; converted to the agent's format.
            scope: Which file to write.
            force: Replace a server of the same name.
            dry_run: Only return the change.

        Raises:
            ValidationError: An invalid server, or the name exists already.
            AgentMuxError: CAPABILITY_ERROR, CONFIG_ERROR, CONFIG_LOCK_ERROR. Nothing was written.
        """
        check_mcp_server(server)
        agent_name, files = self._files_of(agent)
        file, path, table = self._file_to_change(agent_name, files, scope)
        document = read_document(path, file.format)
        if document is not None and not force and value_at(document.data(), (*table, server.name), None) is not None:
            allowed = f"a name that {agent_name} does not have in {path}; --force replaces it"
            raise ValidationError([FieldError("name", server.name, allowed)])
        try:
            native = files.write(server)
        except ValueError as error:
            raise CapabilityError(agent_name, str(error)) from error
        return change_file(
            path, file.format, lambda text: with_field(text, file.format, (*table, server.name), native),
            private=scope != "project", dry_run=dry_run,
        )  # fmt: skip

    def remove(self, agent: str, name: str, *, scope: Scope | None = None, dry_run: bool = False) -> ConfigFileChange:
        """Remove a server from the file of a scope, or else from the file that takes precedence. Raises like `add`."""
        agent_name, files = self._files_of(agent)
        matching = [stored for stored in self.list(agent, scope=scope) if stored.name == name]
        if not matching:
            names = sorted({stored.name for stored in self.list(agent)})
            hint = did_you_mean(name, names, f"it has: {', '.join(names) or 'none'}")
            raise ValidationError([FieldError("name", name, f"an MCP server of {agent_name}; {hint}")])
        file, path = self._file_with(files, next((one for one in matching if one.wins), matching[-1]))
        field = (*file.table(self._installations.paths()), name)
        return change_file(path, file.format, lambda text: without_field(text, file.format, field), dry_run=dry_run)

    def _read(self, agent: str, files: McpFiles) -> Iterator[StoredServer]:
        paths = self._installations.paths()
        for file, path in effective_files(files.files, paths):
            document = read_document(path, file.format)
            if document is None:
                continue
            problem = _objection(files, file, path, paths)
            servers: Any = value_at(document.data(), file.table(paths), None)
            for name, native in servers.items() if isinstance(servers, dict) else ():
                is_table = isinstance(native, dict)
                yield StoredServer(
                    agent=agent, name=name, scope=file.scope, path=path,
                    server=files.read(name, native) if is_table else None,
                    enabled=is_table and files.is_enabled(native) and not files.is_switched_off(paths, name),
                    problem=problem,
                )  # fmt: skip

    def _file_with(self, files: McpFiles, stored: StoredServer) -> tuple[ConfigFile, Path]:
        existing = effective_files(files.files, self._installations.paths())
        return next((file, path) for file, path in existing if (file.scope, path) == (stored.scope, stored.path))

    def _files_of(self, agent: str) -> tuple[str, McpFiles]:
        adapter, files = self._installations.find(agent, lambda parts: parts.mcp, "MCP servers through agent-mux")
        return adapter.agent, files

    def _file_to_change(self, agent: str, files: McpFiles, scope: Scope) -> tuple[ConfigFile, Path, FieldPath]:
        paths = self._installations.paths()
        found = file_to_change(files.files, paths, scope)
        if found is not None:
            return *found, found[0].table(paths)
        scopes = ", ".join(dict.fromkeys(file.scope for file in files.files))
        raise CapabilityError(agent, f"MCP servers for the scope {scope!r}", hint=f"it has: {scopes}")


def _objection(files: McpFiles, file: ConfigFile, path: Path, paths: AgentPaths) -> str | None:
    """Return why the agent does not use a file, or why that cannot be determined."""
    try:
        return files.objection(paths, file)
    except OSError as error:
        return f"cannot determine whether {path} is used: {error.strerror or error}"
