"""What is asked for: the options of a run as they came, as they are remembered, and whether two are the same.

What a request may touch: files and directories in the roots. Whatever a path leads to counts, not what it says.

It says where a run begins, and what it is handed; an agent that may use a shell goes where its user may go.
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
from agent_mux.settings.allowed_directories import Roots
from agent_mux.settings.requests import request_from_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One request for a run."""

    said: Mapping[str, Any]
    """Fields of `RunOptions`."""
    remembered: str
    """JSON: the same without secrets."""
    is_complete: bool
    """Nothing had to be left out of it."""
    fingerprint: str
    """SHA-256 of what was asked: the same request has the same one, whatever the order of its keys."""


def request_of(told: Any) -> RunRequest:
    """Read a request. Raises `ValidationError` by its keys."""
    said = request_from_wire(told)
    plain = {key: value for key, value in told.items() if value is not None}
    as_asked = to_json_bytes(plain)
    redactor = Redactor(secrets_of_servers(said.get("mcp_servers", ())) | secret_values(os.environ))
    remembered = redactor.mask(to_json_bytes(hide_secret_values("", plain)))
    return RunRequest(
        said=said,
        remembered=remembered.decode(),
        is_complete=remembered == as_asked,
        fingerprint=hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest(),
    )


def confined(said: Mapping[str, Any], roots: Roots) -> dict[str, Any]:
    """The same fields of `RunOptions` with the directory in them, and paths resolved. Relative ones: to the first root.

    Raises `ValidationError`, naming the roots, for paths outside of them, and for a directory that is not there.
    """
    result = {**said, "cwd": roots.directory(said.get("cwd"))}
    problems: list[FieldError] = []

    def inside(field: str, path: Any) -> Any:
        if not isinstance(path, str | os.PathLike):
            return path  # what it should be is checked with the other options
        if not roots.holds(path):
            problems.append(FieldError(field, str(path), "a path in " + ", ".join(map(str, roots.directories))))
        return os.path.realpath(roots.default / path)

    for index, one in enumerate(said.get("attachments") or ()):
        inside(f"attachments[{index}].filePath", one.file_path)
    if said.get("agents_doc") is not None:
        result["agents_doc"] = inside("agentsDoc", said["agents_doc"])
    if said.get("skills"):
        result["skills"] = [inside(f"skills[{index}]", one) for index, one in enumerate(said["skills"])]
    if problems:
        raise ValidationError(problems)
    return result
