"""What a request needs, and what a caller has. The one table: routes do not decide."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Scope = Literal["read", "run", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""Each includes those before it."""
PUBLIC = frozenset({"/health", "/ready"})
ADMIN = ("/v1/webhooks",)
"""With all below them."""
ADMIN_WRITES = ("/v1/profiles",)
"""The same, but everybody who may read may read them: they hold for the runs of others, too."""
READING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a token, or somebody on this machine where there are no tokens."""

    name: str
    """Of the token; empty without one."""
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """One of the scopes is or includes this one."""
        return any(SCOPES.index(own) >= SCOPES.index(scope) for own in self.scopes)


ANYBODY = Caller("", frozenset(SCOPES))
"""Whoever can connect, where no tokens are needed."""


def needed_scope(method: str, path: str) -> Scope | None:
    """None: everybody may. A WebSocket begins as GET; whether its commands are obeyed is seen to there."""
    if path in PUBLIC and method in READING:
        return None
    is_read = method in READING
    if _is_below(path, ADMIN) or (not is_read and _is_below(path, ADMIN_WRITES)):
        return "admin"
    return "read" if is_read else "run"


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def scopes_of(names: Iterable[str]) -> frozenset[Scope]:
    """Those that there are; others are none of ours."""
    wanted = frozenset(names)
    return frozenset(scope for scope in SCOPES if scope in wanted)
