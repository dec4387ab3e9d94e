"""Programs that are asked something: bounded, and nothing of them lives on."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_mux import AgentMuxError
from agent_mux.process.command import run_program

SHELL = "/bin/sh"


def say(script: str, **how: float | bytes | str | Callable[[], bool]) -> str:
    return run_program([SHELL, "-c", script], environ={"PATH": "/usr/bin:/bin"}, **{"timeout": 30.0, **how}).stdout  # type: ignore[arg-type]


def ends(file: Path) -> bool:
    """The process of this id, and its group, are gone, or about to be: nobody waits for what was killed."""
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


def test_an_answer() -> None:
    answer = run_program([SHELL, "-c", "echo out; echo err >&2; exit 3"], environ={}, timeout=30)
    assert (answer.exit_code, answer.stdout, answer.stderr, answer.error_line) == (3, "out\n", "err\n", "err")


def test_what_it_gets(tmp_path: Path) -> None:
    assert say("cat; echo $HOME$PWD", cwd=str(tmp_path)) == f"{tmp_path}\n"
    assert say("cat", stdin=b"hello") == "hello"


def test_who_says_nothing() -> None:
    assert run_program([SHELL, "-c", "exit 4"], environ={}, timeout=30).error_line == "it printed no error message"


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="does not exist") as bad:
        run_program([str(tmp_path / "nothing")], environ={}, timeout=30)
    assert bad.value.code == "SPAWN_ERROR"


def test_a_program_that_takes_too_long_is_stopped_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(AgentMuxError, match=r"did not end within 0\.5 s; it was stopped") as bad:
        say(f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 300 & sleep 300", timeout=0.5)
    assert bad.value.code == "TIMEOUT"
    assert time.monotonic() - began < 30
    assert ends(tmp_path / "pid")


def test_a_program_that_nobody_waits_for_any_more_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="was stopped: its result is no longer wanted") as bad:
        say(f"echo $$ > {tmp_path}/pid; sleep 300", is_wanted=lambda: not (tmp_path / "pid").exists())
    assert bad.value.code == "ABORTED"
    assert ends(tmp_path / "pid")


def test_one_that_is_waited_for_has_its_time_and_no_more() -> None:
    assert say("sleep 0.3; echo over", is_wanted=lambda: True) == "over\n"
    with pytest.raises(AgentMuxError, match=r"did not end within 0\.3 s") as bad:
        say("sleep 300", timeout=0.3, is_wanted=lambda: True)
    assert bad.value.code == "TIMEOUT"


def test_who_leaves_somebody_behind_keeps_nobody_waiting(tmp_path: Path) -> None:
    assert say(f"sleep 300 & echo $$ > {tmp_path}/pid; echo over") == "over\n"
    assert ends(tmp_path / "pid")


def test_bytes_that_are_no_text_are_shown() -> None:
    assert say("printf 'a\\377b'") == "a\ufffdb"
