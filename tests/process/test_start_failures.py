"""Programs that cannot be started: the error message, and that the attempt leaves nothing behind."""

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
UNPRIVILEGED_USER = 65534


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


async def failed_start(mux: AgentMux, **fields: Any) -> RunResult:
    """Run, check the events of the failed start and that it leaves nothing behind, and return the result."""
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


async def failure_message(mux: AgentMux, **fields: Any) -> str:
    result = await failed_start(mux, **fields)
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
async def test_unexecutable_file_is_reported(tmp_path: Path, place: str, content: bytes, mode: int, words: str) -> None:
    program = script(tmp_path / "agent", content, mode)
    message = await failure_message(client(tmp_path, (program,), place))
    assert message.startswith(f"{program} could not be started in ")
    assert words in message


async def test_missing_program_is_reported(tmp_path: Path, place: str) -> None:
    message = await failure_message(client(tmp_path, (f"{tmp_path}/gone",), place))
    assert f"{tmp_path}/gone does not exist; install it again [No such file or directory (errno 2)]" in message


async def test_missing_directory_is_reported(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    with anyio.fail_after(20):
        mux = client(tmp_path, (sys.executable,), place)
        async with mux:
            run = mux.run(prompt="hi", cwd=directory)
            directory.rmdir()  # before the run starts, in another task
            result = await run
    assert result.error is not None
    assert f"the directory {directory} does not exist; create it" in result.error.message


async def test_too_long_arguments_are_reported(tmp_path: Path, place: str) -> None:
    message = await failure_message(client(tmp_path, (sys.executable, "x" * 200_000), place))
    assert "bytes of arguments, the longest 200000, and " in message
    assert "shorten the system prompt" in message


async def test_missing_env_interpreter_is_a_crash_with_its_stderr(tmp_path: Path) -> None:
    program = script(tmp_path / "agent", b"#!/usr/bin/env no-such-interpreter\n")
    with anyio.fail_after(20):
        async with client(tmp_path, (program,), "pipe") as mux:
            result = await mux.run(prompt="hi")
    assert (result.exit_reason, result.exit_code) == ("crashed", 127)
    assert result.error is not None
    assert "no-such-interpreter" in result.error.stderr


@contextmanager
def few_files() -> Iterator[None]:
    """Use up all descriptors of this process."""
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


async def test_too_many_open_files_are_reported(tmp_path: Path, place: str) -> None:
    mux = client(tmp_path, (sys.executable,), place)
    with anyio.fail_after(20):
        async with client(tmp_path, ("/no/such/program",), place) as first:
            await first.run(prompt="hi")  # imports everything that is imported on first use
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
async def test_process_creation_errors_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, number: int, words: str, whose: str
) -> None:
    real = subprocess.Popen

    def popen(argv: list[str], **arguments: Any) -> Any:
        if argv[-1].isdigit() == (whose == "reaper"):
            raise OSError(number, os.strerror(number))
        return real(argv, **arguments)

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert words in await failure_message(client(tmp_path, (sys.executable,), place))


@pytest.mark.parametrize("how", ["gone", "a file", "full"])
async def test_unusable_temp_directory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    temporary = tmp_path / "tmp"
    if how == "a file":
        temporary.touch()
    elif how == "full":
        temporary.mkdir()
        monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    message = await failure_message(client(tmp_path, (sys.executable,), "pipe", {"settings.json": "{}"}))
    assert "cannot be written; free disk space there, or set TMPDIR" in message


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_second_run_with_the_same_id_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = temp_dir_of(run_id)
    directory.mkdir()  # as the run of another client creates it
    with anyio.fail_after(20):
        async with client(tmp_path, (sys.executable,), "pipe") as mux:
            run = mux.run(prompt="hi", run_id=run_id)
            with pytest.raises(ValidationError, match="run_id: got '01ARZ3NDEKTSV4RRFFQ69G5FAV'; allowed: an id that"):
                mux.run(prompt="hi", run_id=run_id)
            result = await run
    assert directory.is_dir()
    assert result.error is not None
    assert "another run has this run_id; omit it, or choose another" in result.error.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_inaccessible_directory_is_reported(tmp_path: Path) -> None:
    # In a separate process: root may enter every directory.
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    code = f"""
import errno, os, stat, sys
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure
os.setuid({UNPRIVILEGED_USER})
error = OSError(errno.EACCES, "Permission denied")
print(explain_spawn_failure(error, SpawnAttempt((sys.executable,), {{}}, {str(closed)!r})))
"""
    for above in closed.parents:
        if above != Path("/tmp") and str(above).startswith(tempfile.gettempdir()) and above != above.parent:
            above.chmod(above.stat().st_mode | stat.S_IXOTH)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"the directory {closed} cannot be entered; run in another directory (cwd)" in output


async def test_missing_agent_is_refused_before_the_start(tmp_path: Path) -> None:
    async with AgentMux(config_dir=tmp_path) as mux:
        with pytest.raises(AgentMuxError, match="not installed") as caught:
            mux.run(agent="codex", prompt="hi", env={"PATH": str(tmp_path)})
    assert caught.value.code == "AGENT_NOT_INSTALLED"
