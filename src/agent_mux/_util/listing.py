"""Names in a sentence."""

from collections.abc import Sequence


def list_names(names: Sequence[str], limit: int) -> str:
    """Return the first `limit` names with commas, and the number of the others: `a, b and 3 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
