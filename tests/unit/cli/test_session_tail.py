"""`amux sessions watch` ends when its reader is gone, and with Ctrl-C."""

import os
import select
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_mux.cli.session_commands import _follow

pytestmark = pytest.mark.anyio
PATIENCE = 30
NO_PRINTER: Any = None  # no event is printed


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # that of the command line


async def no_events() -> AsyncIterator[Any]:
    await anyio.sleep_forever()
    yield


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="only Linux reports a closed reader")
async def test_closed_reader_ends_it_while_the_session_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        os.close(reading)
        with pytest.RaisesGroup(BrokenPipeError), anyio.fail_after(PATIENCE):
            await _follow(no_events(), NO_PRINTER)
        monkeypatch.undo()


async def test_ctrl_c_ends_it_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w", encoding="utf-8") as out:  # noqa: ASYNC230, PTH123  # the null device does not block
        monkeypatch.setattr(sys, "stdout", out)

        async def events() -> AsyncIterator[Any]:
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()
            yield

        with anyio.fail_after(PATIENCE):
            await _follow(events(), NO_PRINTER)
        monkeypatch.undo()
