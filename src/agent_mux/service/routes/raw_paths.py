"""Paths with parameters that may hold anything: names and ids that others chose.

What was sent is taken apart before it is decoded. So a `%2F` in a parameter is part of it, and parts nothing.
"""

from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope


class ByRawPath(APIRoute):
    """A route that is matched as it was sent; its parameters are decoded one by one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is meant, and with which parameters."""
        raw = scope.get("raw_path")
        sent = scope if raw is None else {**scope, "path": raw.decode("latin-1").partition("?")[0]}
        match, child = super().matches(sent)
        if raw is not None and match is not Match.NONE:
            child["path_params"] = {name: _decoded(value) for name, value in child["path_params"].items()}
        return match, child


def _decoded(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value
