"""Text of files, between the bytes on the disk and what can be sent."""

from agent_loop.errors import ToolError


def shown(text: str) -> str:
    """Text that was decoded with `surrogateescape`, as text that can be sent: stray bytes become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def encoded(text: str, what: str) -> bytes:
    """UTF-8. Raises `ToolError` for half a surrogate pair, which JSON can say and no file can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        where = f"a character at position {error.start}"
        raise ToolError(f"{what} has {where} that UTF-8 cannot hold; leave it out") from error
