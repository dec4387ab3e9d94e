"""What the namespaces of a service have in common: paths, answers, and what there is no way to ask."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from agent_mux.client.remote.connection import Line, decoded
from agent_mux.errors import CapabilityError

if TYPE_CHECKING:
    from agent_mux.sessions.summary import When

_DOTS = {".": "%2E", "..": "%2E%2E"}
"""Names that would be directions in a path."""


def path_of(*names: str, **parameters: object) -> str:
    """`/v1/...` with these names as parts, whatever is in them. Parameters that are None or empty are left out."""
    path = "/".join(("/v1", *(_DOTS.get(name) or quote(name, safe="", errors="replace") for name in names)))
    said = {name: value for name, value in parameters.items() if value not in {None, ()}}
    return f"{path}?{urlencode(said, doseq=True, errors='replace')}" if said else path


def answer(line: Line, kind: Any, *names: str, **parameters: object) -> Any:
    """What the service says there, as a `kind`. Blocking. Raises what the service says; UNAVAILABLE."""
    return decoded(line.ask_blocking("GET", path_of(*names, **parameters), again=True), kind)


def milliseconds(when: "When | None") -> int | None:
    """A time as the service takes it: since the epoch."""
    return round(when.timestamp() * 1000) if isinstance(when, datetime) else when


def refused(what: str, instead: str) -> CapabilityError:
    """What a service does not do for its clients."""
    return CapabilityError("a service", what, hint=instead)
