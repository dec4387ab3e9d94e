"""Programs that cannot be started: what the error says, and that nothing is left of the attempt."""

import errno
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux, AgentMuxError, RunResult, ValidationError, validate
from agent_mux.run.environment import temp_dir_of
from agent_mux.sdk.adapter import SpawnArgs
from agent_mux.sdk.codec import TerminalSize
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.torture.census import Footprint

pytestmark = pytest.mark.anyio
NOBODY = 65534


@pytest.fixture(params=["pipe", "terminal"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def script(path: Path, content: bytes, mode: int = 0o755) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def client(directory: Path, argv: tuple[str, ...], place: str, files: dict[str, str] | None = None) -> AgentMux:
    terminal = TerminalSize() if place == "terminal" else None
    adapter = replace(
        scripted_adapter(""),
        spawn=lambda *_: SpawnArgs(argv=argv, protocol="lines", terminal=terminal, files=files or {}),
    )
    registry = AdapterRegistry()
    registry.register(adapter)
    return AgentMux(adapters=registry, default_agent="scripted", config_dir=directory / "config")


async def refused(mux: AgentMux, **fields: Any) -> RunResult:
    """Run, and see that the attempt is told as it must be and leaves nothing."""
    before = Footprint.now()
    with anyio.fail_after(20):
        async with mux:
            run = mux.run(**{"prompt": "hi", **fields})
            events = [event async for event in run]
            result = await run
            assert mux._reaper._runs == {}
    assert before.leaks() == []
    assert validate(events) == []
    assert [event.type for event in events][-2:] == ["crash", "session_end"]
    assert events[-2].exit_code == -1
    assert (result.exit_reason, result.exit_code, result.signal, run.state) == ("crashed", None, None, "crashed")
    assert result.error is not None
    assert result.error.code == "SPAWN_ERROR"
    assert not temp_dir_of(run.run_id).exists()
    return result


async def reason(mux: AgentMux, **fields: Any) -> str:
    result = await refused(mux, **fields)
    assert result.error is not None
    return result.error.message


ELF_OF_ANOTHER_MACHINE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\x00" + bytes(236)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"#!/no/such/interpreter -x\n", 0o755, "names the interpreter '/no/such/interpreter', which does not exist"),
        (b"#!/bin/sh\r\necho\r\n", 0o755, r"names the interpreter '/bin/sh\r', which does not exist"),
        (
            b"echo no interpreter\n",
            0o755,
            "nor a script that names its interpreter; start it with a line like #!/bin/sh",
        ),
        (ELF_OF_ANOTHER_MACHINE, 0o755, "built for another kind of machine; install the build for this one"),
        (b"#!/bin/sh\n", 0o644, "is not executable; try: chmod +x"),
    ],
)
async def test_a_file_that_is_no_program_here(
    tmp_path: Path, place: str, content: bytes, mode: int, words: str
) -> None:
    program = script(tmp_path / "agent", content, mode)
    message = await reason(client(tmp_path, (program,), place))
    assert message.startswith(f"{program} could not be started in ")
    assert words in message


async def test_a_program_that_is_gone(tmp_path: Path, place: str) -> None:
    message = await reason(client(tmp_path, (f"{tmp_path}/gone",), place))
    assert f"{tmp_path}/gone does not exist; install it again [No such file or directory (errno 2)]" in message


async def test_a_directory_that_is_gone(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    with anyio.fail_after(20):
        mux = client(tmp_path, (sys.executable,), place)
        async with mux:
            run = mux.run(prompt="hi", cwd=directory)
            directory.rmdir()  # before the run begins: it is another task
            result = await run
    assert result.error is not None
    assert f"the directory {directory} does not exist; create it" in result.error.message


async def test_arguments_that_are_too_long(tmp_path: Path, place: str) -> None:
    message = await reason(client(tmp_path, (sys.executable, "x" * 200_000), place))
    assert "bytes of arguments, the longest 200000, and " in message
    assert "shorten the system prompt" in message


async def test_an_interpreter_that_env_does_not_find_is_a_crash_that_says_so(tmp_path: Path) -> None:
    program = script(tmp_path / "agent", b"#!/usr/bin/env no-such-interpreter\n")
    with anyio.fail_after(20):
        async with client(tmp_path, (program,), "pipe") as mux:
            result = await mux.run(prompt="hi")
    assert (result.exit_reason, result.exit_code) == ("crashed", 127)
    assert result.error is not None
    assert "no-such-interpreter" in result.error.stderr


@contextmanager
def few_files() -> Iterator[None]:
    """No more descriptors than are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    with suppress(OSError):
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_too_many_open_files(tmp_path: Path, place: str) -> None:
    mux = client(tmp_path, (sys.executable,), place)
    with anyio.fail_after(20):
        async with client(tmp_path, ("/no/such/program",), place) as first:
            await first.run(prompt="hi")  # what is imported when it is first needed is there now
        async with mux:
            before = Footprint.now()
            with few_files():
                result = await mux.run(prompt="hi")
            assert before.leaks() == []
            assert mux._reaper._runs == {}
    assert (result.exit_reason, result.journal) == ("crashed", None)
    assert result.error is not None
    assert "has too many files open; raise its limit (ulimit -n)" in result.error.message


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EAGAIN, "allows no more processes"),
        (errno.ENOMEM, "no memory is left"),
        (errno.ENFILE, "this machine has too many files open"),
        (errno.EIO, "Input/output error (errno 5)"),
    ],
)
@pytest.mark.parametrize("whose", ["agent", "reaper"])
async def test_no_more_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: int, words: str, whose: str
) -> None:
    real = subprocess.Popen

    def popen(argv: list[str], **arguments: Any) -> Any:
        if argv[-1].isdigit() == (whose == "reaper"):
            raise OSError(number, os.strerror(number))
        return real(argv, **arguments)

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert words in await reason(client(tmp_path, (sys.executable,), place))


@pytest.mark.parametrize("how", ["gone", "a file", "full"])
async def test_a_temp_directory_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    temporary = tmp_path / "tmp"
    if how == "a file":
        temporary.touch()
    elif how == "full":
        temporary.mkdir()
        monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    message = await reason(client(tmp_path, (sys.executable,), "pipe", {"settings.json": "{}"}))
    assert "cannot be written; free disk space there, or set TMPDIR" in message


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_two_runs_with_one_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = temp_dir_of(run_id)
    directory.mkdir()  # as the run of another client has it
    with anyio.fail_after(20):
        async with client(tmp_path, (sys.executable,), "pipe") as mux:
            run = mux.run(prompt="hi", run_id=run_id)
            with pytest.raises(ValidationError, match="run_id: got '01ARZ3NDEKTSV4RRFFQ69G5FAV'; allowed: one that no"):
                mux.run(prompt="hi", run_id=run_id)
            result = await run
    assert directory.is_dir()
    assert result.error is not None
    assert "another run has this run_id; omit it, or choose another" in result.error.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_directory_that_may_not_be_entered(tmp_path: Path) -> None:
    # In a process of its own: root may enter everything.
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    code = f"""
import errno, os, stat, sys
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure
os.setuid({NOBODY})
error = OSError(errno.EACCES, "Permission denied")
print(explain_spawn_failure(error, SpawnAttempt((sys.executable,), {{}}, {str(closed)!r})))
"""
    for above in closed.parents:
        if above != Path("/tmp") and str(above).startswith(tempfile.gettempdir()) and above != above.parent:
            above.chmod(above.stat().st_mode | stat.S_IXOTH)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"the directory {closed} cannot be entered; run in another directory (cwd)" in said


async def test_an_agent_that_is_not_installed_is_told_at_once(tmp_path: Path) -> None:
    async with AgentMux(config_dir=tmp_path) as mux:
        with pytest.raises(AgentMuxError, match="not installed") as caught:
            mux.run(agent="codex", prompt="hi", env={"PATH": str(tmp_path)})
    assert caught.value.code == "AGENT_NOT_INSTALLED"
