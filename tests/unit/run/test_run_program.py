"""Running programs to their end: bounded, and without processes left behind."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_mux import AgentMuxError
from agent_mux.process.command import last_line, run_program

SHELL = "/bin/sh"


def stdout_of(script: str, **how: float | bytes | str | Callable[[], bool]) -> str:
    return run_program([SHELL, "-c", script], environ={"PATH": "/usr/bin:/bin"}, **{"timeout": 30.0, **how}).stdout  # type: ignore[arg-type]


def ends(file: Path) -> bool:
    """Return whether the process and its group have ended, or end soon; killed processes are not reaped here."""
    group = file.read_text("utf-8").strip()
    deadline = time.monotonic() + 30
    while group in {one for state, _, one, *_ in map(_stat, Path("/proc").glob("[0-9]*")) if state != "Z"}:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _stat(process: Path) -> list[str]:
    try:
        return (process / "stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return ["Z", "", ""]


def test_exit_code_and_output_are_returned() -> None:
    answer = run_program([SHELL, "-c", "echo out; echo err >&2; exit 3"], environ={}, timeout=30)
    assert (answer.exit_code, answer.stdout, answer.stderr, answer.error_line) == (3, "out\n", "err\n", "err")


def test_a_program_gets_stdin_environment_and_directory(tmp_path: Path) -> None:
    assert stdout_of("cat; echo $HOME$PWD", cwd=str(tmp_path)) == f"{tmp_path}\n"
    assert stdout_of("cat", stdin=b"hello") == "hello"


def test_a_silent_program_has_a_default_error_line() -> None:
    assert run_program([SHELL, "-c", "exit 4"], environ={}, timeout=30).error_line == "it printed no error message"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="does not exist") as bad:
        run_program([str(tmp_path / "nothing")], environ={}, timeout=30)
    assert bad.value.code == "SPAWN_ERROR"


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_stopped_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(AgentMuxError, match=r"did not end within 3 s; it was stopped") as bad:
        stdout_of(f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 300 & sleep 300", timeout=3)
    assert bad.value.code == "TIMEOUT"
    assert time.monotonic() - began < 30
    assert ends(tmp_path / "pid")


def test_a_program_that_is_no_longer_wanted_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="was stopped: its result is no longer wanted") as bad:
        stdout_of(f"echo $$ > {tmp_path}/pid; sleep 300", is_wanted=lambda: not (tmp_path / "pid").exists())
    assert bad.value.code == "ABORTED"
    assert ends(tmp_path / "pid")


@pytest.mark.slow
def test_a_wanted_program_is_stopped_at_the_timeout() -> None:
    assert stdout_of("sleep 0.3; echo over", is_wanted=lambda: True) == "over\n"
    with pytest.raises(AgentMuxError, match=r"did not end within 0\.3 s") as bad:
        stdout_of("sleep 300", timeout=0.3, is_wanted=lambda: True)
    assert bad.value.code == "TIMEOUT"


def test_a_process_left_behind_does_not_delay_the_result(tmp_path: Path) -> None:
    assert stdout_of(f"sleep 300 & echo $$ > {tmp_path}/pid; echo over") == "over\n"
    assert ends(tmp_path / "pid")


def test_bytes_that_are_not_text_are_replaced() -> None:
    assert stdout_of("printf 'a\\377b'") == "a\ufffdb"


def test_the_error_line_is_not_a_line_of_a_stack() -> None:
    assert (
        last_line("Error: cannot delete\n\nStack backtrace:\n   0: <unknown>\n   1: <unknown>\n")
        == "Error: cannot delete"
    )
