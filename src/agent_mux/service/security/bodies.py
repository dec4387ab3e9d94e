"""Bodies of requests: JSON, not larger than allowed, and not slower.

They are counted while they come, so that a chunked one without a length is no way around the limit.
"""

import anyio
from starlette.types import Message, Receive

from agent_mux.service.security.refusing import Refused

JSON = "application/json"


def is_json(content_type: str | None) -> bool:
    """`application/json`, or something that ends in `+json`."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def check_declared(content_length: str | None, limit: int) -> None:
    """Raises `Refused` for a body that says itself that it is too large, before any of it is read."""
    if content_length is not None and content_length.isdigit() and int(content_length) > limit:
        raise _too_large(limit)


def bounded(receive: Receive, limit: int, within: float) -> Receive:
    """`receive`, which raises `Refused` when the body becomes larger than `limit` bytes, or takes longer than `within`.

    The time counts from the first call: nobody waits for a body that is not read.
    """
    size = 0
    deadline: float | None = None
    is_whole = False

    async def receive_bounded() -> Message:
        nonlocal size, deadline, is_whole
        if is_whole:
            return await receive()  # what comes now is the end of the connection, whenever that is
        deadline = anyio.current_time() + within if deadline is None else deadline
        with anyio.CancelScope(deadline=deadline) as scope:
            message = await receive()
        if scope.cancelled_caught:
            raise Refused(408, f"the body did not come within {within:g} s", {"connection": "close"})
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > limit:
            raise _too_large(limit)
        return message

    return receive_bounded


def _too_large(limit: int) -> Refused:
    return Refused(413, f"the body is larger than {limit} bytes; send less")
