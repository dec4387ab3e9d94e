"""How large a request may be. The parser has a limit too, for what it has not understood yet; this is the exact one."""

from collections.abc import Iterable

MOST_HEADERS = 100
LARGEST_HEADERS = 1 << 14  # bytes of all names and values
LONGEST_TARGET = 1 << 13  # bytes of path and query


def wrong_size(target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The status for a head that is too large; None: it is not. Source: RFC 9110, 15.5.15, and RFC 6585, section 5."""
    if len(target) > LONGEST_TARGET:
        return 414
    sizes = [len(name) + len(value) for name, value in headers]
    return 431 if len(sizes) > MOST_HEADERS or sum(sizes) > LARGEST_HEADERS else None
