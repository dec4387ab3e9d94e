"""Requests for runs: the options as sent and as stored, their fingerprint, and the directories that they may use.

Paths are checked after resolving symbolic links. This restricts where a run starts and which files it is given; an
agent with a shell can go wherever its user can.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import Redactor, hide_secret_values, secret_values, secrets_of_servers
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.settings.requests import request_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One request for a run."""

    options: Mapping[str, Any]
    """Fields of `RunOptions`."""
    stored_json: str
    """JSON of the request without secrets."""
    is_complete: bool
    """Whether the stored JSON equals the request, because it contained no secrets."""
    fingerprint: str
    """SHA-256 of the request, independent of the order of its keys."""


def request_of(fields: Any) -> RunRequest:
    """Parse a request. Raises `ValidationError` by its keys."""
    options = request_from_json(fields)
    present = {key: value for key, value in fields.items() if value is not None}
    as_sent = to_json_bytes(present)
    known = (
        secrets_of_servers(options.get("mcp_servers", ())),
        secret_values(os.environ),
        secret_values(options.get("env", {})),
    )
    redactor = Redactor(frozenset().union(*known))
    stored_json = redactor.mask(to_json_bytes(hide_secret_values("", present)))
    return RunRequest(
        options=options,
        stored_json=stored_json.decode(),
        is_complete=stored_json == as_sent,
        fingerprint=hashlib.sha256(msgspec.json.encode(present, order="deterministic")).hexdigest(),
    )


def confined(options: Mapping[str, Any], roots: AllowedDirectories) -> dict[str, Any]:
    """Return the fields with the working directory set and paths resolved; relative ones start at the first root.

    Raises `ValidationError`, naming the roots, for paths outside of them and for a missing directory.
    """
    result = {**options, "cwd": roots.directory(options.get("cwd"))}
    problems: list[FieldError] = []

    def inside(field: str, path: Any) -> Any:
        if not isinstance(path, str | os.PathLike):
            return path  # its type is checked with the other options
        problems.extend(roots.refusals({field: path}))
        return os.path.realpath(roots.default / path)

    for index, one in enumerate(options.get("attachments") or ()):
        inside(f"attachments[{index}].filePath", one.file_path)
    if options.get("agents_doc") is not None:
        result["agents_doc"] = inside("agentsDoc", options["agents_doc"])
    if options.get("skills"):
        result["skills"] = [inside(f"skills[{index}]", one) for index, one in enumerate(options["skills"])]
    if options.get("add_dirs"):
        result["add_dirs"] = [inside(f"addDirs[{index}]", one) for index, one in enumerate(options["add_dirs"])]
    if problems:
        raise ValidationError(problems)
    return result
