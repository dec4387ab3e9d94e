"""How large and how slow a request may be."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agent_mux.service.security import http_rules
from agent_mux.service.security.http_rules import (
    HEADERS,
    RequestRefused,
    bounded_receive,
    check_content_length,
    is_json,
)


def receiving(*bodies: bytes) -> Callable[[], Any]:
    waiting = list(bodies)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await anyio.sleep_forever()
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    return receive


@pytest.mark.anyio
async def test_a_body_is_counted_while_it_comes() -> None:
    receive = bounded_receive(receiving(b"12345", b"12345", b"1", b"never read"), 10, 30.0)
    assert [(await receive())["body"] for _ in range(2)] == [b"12345", b"12345"]
    with pytest.raises(RequestRefused) as refused:
        await receive()
    assert refused.value.status_code == 413


@pytest.mark.anyio
async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def never() -> Any:
        await anyio.sleep_forever()

    with pytest.raises(RequestRefused) as refused:
        await bounded_receive(never, 10, 0.0)()
    assert refused.value.status_code == 408


@pytest.mark.anyio
async def test_no_time_limit_applies_after_the_body() -> None:
    receive = bounded_receive(receiving(b"all"), 10, 30.0)
    assert (await receive())["more_body"] is False
    with anyio.move_on_after(0) as scope:
        await receive()
    assert scope.cancelled_caught, "it waits for the end of the connection"


@pytest.mark.parametrize(
    ("length", "is_fine"), [(None, True), ("0", True), ("10", True), ("11", False), ("9" * 40, False)]
)
def test_a_length_that_is_too_large_is_refused_before_anything_is_read(length: str | None, is_fine: bool) -> None:
    if is_fine:
        check_content_length(length, 10)
        return
    with pytest.raises(RequestRefused) as refused:
        check_content_length(length, 10)
    assert refused.value.status_code == 413


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/merge-patch+json", True),
        ("text/plain", False),
        ("text/plain; application/json", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=x", False),
        ("", False),
        (None, False),
    ],
)
def test_what_counts_as_json(text: str | None, is_so: bool) -> None:
    assert is_json(text) is is_so


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        (b"/x" * 100, [(b"a", b"b")] * http_rules.MAX_HEADERS, None),
        (b"/x", [(b"a", b"b")] * (http_rules.MAX_HEADERS + 1), 431),
        (b"/x", [(b"a", b"b" * http_rules.LARGEST_HEADERS)], 431),
        (b"/" * (http_rules.LONGEST_TARGET + 1), [], 414),
    ],
)
def test_the_head_has_limits(target: bytes, headers: list[tuple[bytes, bytes]], status: int | None) -> None:
    assert http_rules.head_size_status(target, headers) == status


def test_the_policy_lets_nothing_run() -> None:
    policy = dict(rule.strip().partition(" ")[::2] for rule in HEADERS["content-security-policy"].split(";"))
    assert policy == dict.fromkeys(("default-src", "frame-ancestors", "base-uri", "form-action"), "'none'")
