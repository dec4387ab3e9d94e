"""Relative paths in options: they start at the directory of the caller, or at that of the file that contains them.

They never depend on the working directory of the run, which `cwd` chooses. Which values of an agent are paths is known
to its adapter (`Adapter.absolute_files`), for example a model that is a script. See docs/spec/run-api.md, section 1.7.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.options import Attachment, McpServer
from agent_mux.sdk.registry import AdapterRegistry

Absolute = Callable[[str], str]
"""Returns the absolute path of a relative one."""


def start_at(directory: Callable[[], Path]) -> Absolute:
    """Return the function that lets relative paths start at a directory, which is determined when one is needed.

    Absolute paths, and those that begin with `~`, are unchanged.
    """

    def absolute(path: str) -> str:
        if path.startswith("~") or os.path.isabs(path):  # noqa: PTH117  # a text, as the agent reads it
            return path
        return os.path.abspath(directory() / path)  # noqa: PTH100  # resolves `..` only

    return absolute


def with_absolute_files(
    fields: Mapping[str, Any], agent: str, adapters: AdapterRegistry, absolute: Absolute
) -> dict[str, Any]:
    """Return option fields whose relative paths, as the agents understand them, are absolute."""
    found = dict(fields)
    if agent in adapters:
        found |= _of_adapter(adapters.get(agent), fields, absolute)
    fallback = fields.get("fallback")
    if isinstance(fallback, list | tuple):
        found["fallback"] = type(fallback)(_fallback(one, adapters, absolute) for one in fallback)
    return found


def with_paths_of_caller(fields: Mapping[str, Any], absolute: Absolute) -> dict[str, Any]:
    """Return the fields of a call with absolute paths in the options that are paths for every agent.

    Values that need not be paths are changed where they name a file of the caller: the programs of MCP servers, and the
    session files that some agents take for a session id. They may also exist in the working directory of the run.
    """
    found = dict(fields)
    for name in ("agents_doc", "journal"):
        if isinstance(fields.get(name), str | os.PathLike):
            found[name] = Path(absolute(os.fspath(fields[name])))
    for name in ("skills", "add_dirs"):
        if _are_texts(fields.get(name)):
            found[name] = tuple(absolute(path) for path in fields[name])
    attachments = fields.get("attachments")
    if isinstance(attachments, list | tuple):
        found["attachments"] = tuple(_with_absolute_file(one, absolute) for one in attachments)
    for name in ("session_id", "fork_session_id"):
        if isinstance(fields.get(name), str):
            found[name] = _existing(fields[name], absolute)
    servers = fields.get("mcp_servers")
    if isinstance(servers, list | tuple):
        found["mcp_servers"] = tuple(_with_program(server, absolute) for server in servers)
    return found


def _of_adapter(adapter: Adapter, fields: Mapping[str, Any], absolute: Absolute) -> Mapping[str, Any]:
    return {} if adapter.absolute_files is None else adapter.absolute_files(fields, absolute)


def _fallback(entry: Any, adapters: AdapterRegistry, absolute: Absolute) -> Any:
    agent, colon, model = entry.partition(":") if isinstance(entry, str) else ("", "", "")
    if not model or agent not in adapters:
        return entry
    return f"{agent}{colon}{_of_adapter(adapters.get(agent), {'model': model}, absolute).get('model', model)}"


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(path, str) and path for path in values)


def _with_absolute_file(attachment: Any, absolute: Absolute) -> Any:
    path = attachment.file_path if isinstance(attachment, Attachment) else None
    return replace(attachment, file_path=absolute(path)) if isinstance(path, str) and path else attachment


def _with_program(server: Any, absolute: Absolute) -> Any:
    if not isinstance(server, McpServer) or not server.command:
        return server
    program = _existing(server.command, absolute)
    return server if program == server.command else replace(server, command=program)


def _existing(path: str, absolute: Absolute) -> str:
    found = absolute(path) if os.sep in path and "\0" not in path else path
    return found if os.path.isfile(found) else path  # noqa: PTH113  # False if it may not be accessed
