"""Names of fields as people write them: `permissions.allow`, `mcpServers."my.server".command`."""

import json
import re
import tomllib
from typing import Any

from agent_mux.documents.document import DocumentError, FieldPath

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def parse_field(name: str) -> FieldPath:
    """The way that a dotted name describes; parts with other characters are quoted. Raises `DocumentError`."""
    try:
        found: Any = tomllib.loads(f"{name} = 0") if "\n" not in name else {}
    except tomllib.TOMLDecodeError:
        found = {}
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((part, found),) = found.items()
        path.append(part)
    if not path or found != 0:
        raise DocumentError(f"{name!r} names no field; write it as in permissions.allow, quote other characters")
    return tuple(path)


def field_name(path: FieldPath) -> str:
    """A way, as people write it."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)
