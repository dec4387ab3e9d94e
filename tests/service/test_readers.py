"""Calls that read the agents' files run in a limited number of threads and delay no other request."""

import threading
from pathlib import Path
from typing import cast

import anyio
import pytest

from agent_mux.service.service import MAX_READERS, Service, in_thread

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as the service


class Readers:
    """What `in_thread` needs of a service."""

    def __init__(self) -> None:
        self.readers = anyio.CapacityLimiter(MAX_READERS)


async def test_only_some_read_at_a_time() -> None:
    service = cast("Service", Readers())
    lock, at_once, most = threading.Lock(), 0, 0
    together = threading.Barrier(MAX_READERS)

    def read() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        together.wait(30)
        with lock:
            at_once -= 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3 * MAX_READERS):
                tasks.start_soon(in_thread, service, read)
    assert most == MAX_READERS


async def test_arguments_answers_and_errors_go_through() -> None:
    service = cast("Service", Readers())
    assert await in_thread(service, Path, "a", "b") == Path("a/b")
    with pytest.raises(ZeroDivisionError):
        await in_thread(service, divmod, 1, 0)
