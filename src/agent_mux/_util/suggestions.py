"""Suggestions for misspelled names: the nearest known name, as the hint of an error."""

from collections.abc import Iterable

SIMILARITY = 0.6
"""Least similarity, 0 to 1, of a name that is suggested."""


def closest_names(name: str, known: Iterable[str], *, limit: int = 1, similarity: float = SIMILARITY) -> list[str]:
    """Return up to `limit` known names that resemble `name`, the most similar first."""
    from difflib import get_close_matches  # noqa: PLC0415  # needed for errors only

    return get_close_matches(name, list(known), n=limit, cutoff=similarity)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return `did you mean 'NAME'?` with the known name that resembles `name` most; `otherwise` if none does."""
    close = closest_names(name, known)
    return f"did you mean {close[0]!r}?" if close else otherwise
