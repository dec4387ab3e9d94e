"""The MCP servers of agents, on one object. Source: run API, section 7."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_mux.agents.config.changes import FileChange, change_file
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import CapabilityError, FieldError, ValidationError
from agent_mux.sdk.config import ConfigFile, Scope, file_to_change, files_that_count, read_document
from agent_mux.sdk.documents import FieldPath, with_field, without_field
from agent_mux.sdk.documents.document import value_at
from agent_mux.sdk.installation import McpFiles
from agent_mux.sdk.options import McpServer, check_mcp_server


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """An MCP server in an agent's own files."""

    agent: str
    name: str
    scope: Scope
    path: Path
    server: McpServer | None
    """None: it cannot be understood."""
    enabled: bool = True
    wins: bool = True
    """False: another file has one of this name, and the agent takes that."""


class McpServers:
    """The MCP servers that agents keep. Blocking; writes only what is asked for, and keeps the rest as it is."""

    def __init__(self, homes: InstallationResolver | None = None) -> None:
        """Take where to look; default: what this process would find."""
        self._homes = homes if homes is not None else InstallationResolver()

    def list(self, agent: str, *, scope: Scope | None = None) -> list[StoredServer]:
        """Every server of an agent. Raises CAPABILITY_ERROR, CONFIG_ERROR for a file that cannot be read."""
        adapter, files = self._of(agent)
        found = [stored for stored in self._stored(adapter, files) if scope in {None, stored.scope}]
        last = {stored.name: index for index, stored in enumerate(found)}
        return [_losing(stored) if last[stored.name] != index else stored for index, stored in enumerate(found)]

    def add(  # one for each thing that a person may say
        self, agent: str, server: McpServer, *, scope: Scope = "global", force: bool = False, dry_run: bool = False
    ) -> FileChange:
        """Write a server down for an agent.

        Args:
            agent: Name or alias.
            server: In our shape.
            scope: For whom.
            force: Also where there is one of this name.
            dry_run: Only say what would be done.

        Raises:
            ValidationError: A server that cannot be, or that is there already.
            AgentMuxError: CAPABILITY_ERROR, CONFIG_ERROR, CONFIG_LOCK_ERROR. Then nothing was written.
        """
        check_mcp_server(server)
        adapter, files = self._of(agent)
        file, path, table = self._file_for(adapter, files, scope)
        document = read_document(path, file.format)
        if document is not None and not force and value_at(document.data(), (*table, server.name), None) is not None:
            there = f"a name that {adapter} does not have in {path}; --force replaces it"
            raise ValidationError([FieldError("name", server.name, there)])
        try:
            written = files.write(server)
        except ValueError as error:
            raise CapabilityError(adapter, str(error)) from error
        return change_file(
            path, file.format, lambda text: with_field(text, file.format, (*table, server.name), written),
            private=scope != "project", dry_run=dry_run,
        )  # fmt: skip

    def remove(self, agent: str, name: str, *, scope: Scope | None = None, dry_run: bool = False) -> FileChange:
        """Remove a server: from the file that wins, or from that of a scope. Errors as for `add`."""
        adapter, files = self._of(agent)
        there = [stored for stored in self.list(agent, scope=scope) if stored.name == name]
        if not there:
            names = sorted({stored.name for stored in self.list(agent)})
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(names) or 'none'}"
            raise ValidationError([FieldError("name", name, f"an MCP server of {adapter}; {hint}")])
        file, path = self._file_of(files, there[-1])
        place = (*file.table(self._homes.place()), name)
        return change_file(path, file.format, lambda text: without_field(text, file.format, place), dry_run=dry_run)

    def _stored(self, agent: str, files: McpFiles) -> Iterator[StoredServer]:
        place = self._homes.place()
        for file, path in files_that_count(files.files, place):
            document = read_document(path, file.format)
            if document is None:
                continue
            servers: Any = value_at(document.data(), file.table(place), None)
            for name, native in servers.items() if isinstance(servers, dict) else ():
                is_table = isinstance(native, dict)
                yield StoredServer(
                    agent=agent, name=name, scope=file.scope, path=path,
                    server=files.read(name, native) if is_table else None,
                    enabled=is_table and files.is_enabled(native) and not files.is_switched_off(place, name),
                )  # fmt: skip

    def _file_of(self, files: McpFiles, stored: StoredServer) -> tuple[ConfigFile, Path]:
        counting = files_that_count(files.files, self._homes.place())
        return next((file, path) for file, path in counting if (file.scope, path) == (stored.scope, stored.path))

    def _of(self, agent: str) -> tuple[str, McpFiles]:
        adapter, files = self._homes.find(agent, lambda home: home.mcp, "MCP servers in files that are known")
        return adapter.agent, files

    def _file_for(self, agent: str, files: McpFiles, scope: Scope) -> tuple[ConfigFile, Path, FieldPath]:
        place = self._homes.place()
        found = file_to_change(files.files, place, scope)
        if found is not None:
            return *found, found[0].table(place)
        scopes = ", ".join(dict.fromkeys(file.scope for file in files.files))
        raise CapabilityError(agent, f"MCP servers for the scope {scope!r}", hint=f"it has: {scopes}")


def _losing(stored: StoredServer) -> StoredServer:
    return replace(stored, wins=False)
