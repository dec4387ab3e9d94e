"""HTML elements whose texts and attributes are always escaped."""

from collections.abc import Iterable
from html import escape

from agent_mux._util.sanitize import replace_surrogates, reveal, sanitize


class Markup(str):
    """Text that is HTML; any other string is escaped where it becomes part of an element."""

    __slots__ = ()


def plain(value: object) -> Markup:
    """Return a value as escaped text. Controls are removed, and invisible characters become visible."""
    return Markup(escape(reveal(sanitize(replace_surrogates(str(value)))), quote=True))


def join(parts: Iterable["Markup | str"]) -> Markup:
    """Return the parts in sequence, each escaped unless it is HTML."""
    return Markup("".join(part if isinstance(part, Markup) else plain(part) for part in parts))


def tag(name: str, *parts: "Markup | str", **attributes: object) -> Markup:
    """Return an element. Attributes: `_` becomes `-`, a `_` at the end is dropped; None and False are left out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{plain(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{written}>{join(parts)}</{name}>")
