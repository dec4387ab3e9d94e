"""Descriptions of class fields, from `Annotated[..., Meta(description=...)]`."""

from functools import cache

from msgspec import Meta


@cache
def field_descriptions_of(kind: type) -> dict[str, str]:
    """Return the description of each annotated field of a class, inherited fields included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        for name, annotation in vars(base).get("__annotations__", {}).items():
            for item in getattr(annotation, "__metadata__", ()):
                if isinstance(item, Meta) and item.description is not None:
                    found[name] = item.description
    return found
