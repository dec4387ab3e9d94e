"""Protocols on standard input and output: complete transfer, without blocking forever."""

import os
import socket
import sys
from pathlib import Path

import anyio
import pytest

from agent_mux.cli.streams import ProtocolPipe, protocol_pipe

pytestmark = pytest.mark.anyio
LONG = bytes(range(256)) * 4096  # more than a pipe holds


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_a_slow_reader_gets_everything(kind: str) -> None:
    ours, theirs = _ends(kind)
    got = bytearray()

    async def read() -> None:
        while len(got) < len(LONG):
            await anyio.wait_readable(theirs)
            got.extend(os.read(theirs, 1000 + len(got) % 7))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await ProtocolPipe(0, ours).write(LONG)
    assert got == LONG
    os.close(ours)
    os.close(theirs)


async def test_a_write_to_a_stalled_reader_can_be_cancelled() -> None:
    ours, theirs = _ends("pipe")
    with anyio.move_on_after(0.05) as scope:
        await ProtocolPipe(0, ours).write(LONG)
    assert scope.cancelled_caught
    os.close(ours)
    os.close(theirs)


async def test_a_write_to_a_closed_reader_raises() -> None:
    ours, theirs = _ends("pipe")
    os.close(theirs)
    with anyio.fail_after(30), pytest.raises(BrokenPipeError):
        await ProtocolPipe(0, ours).write(b"x")
    os.close(ours)


async def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    incoming = os.open(tmp_path / "in", os.O_RDONLY)
    outgoing = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    pipe = ProtocolPipe(incoming, outgoing)
    with anyio.fail_after(30):
        lines = [line async for line in pipe.lines()]
        await pipe.write(LONG)
    assert lines == [b"one", b"two"]
    assert (tmp_path / "out").read_bytes() == LONG
    os.close(incoming)
    os.close(outgoing)


async def test_prints_during_a_protocol_go_to_standard_error(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing, open(1, "w", closefd=False) as out:  # noqa: ASYNC230
        monkeypatch.setattr(sys, "stdin", nothing)
        monkeypatch.setattr(sys, "stdout", out)
        with protocol_pipe() as pipe:
            os.write(1, b"a stray word\n")
            await pipe.write(b"protocol\n")
        os.write(1, b"after\n")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("protocol\nafter\n", "a stray word\n")


def _ends(kind: str) -> tuple[int, int]:
    """Where we write, and where it is read; both block."""
    if kind == "pipe":
        reading, writing = os.pipe()
        return writing, reading
    one, other = socket.socketpair()
    return one.detach(), other.detach()
