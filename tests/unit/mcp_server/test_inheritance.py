"""The limits that a server inherits: from its environment, and from those of its ancestors."""

from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.inheritance import InheritedLimits, read_inherited_limits

DEEP = {"AGENT_MUX_DEPTH": "2", "AGENT_MUX_MAX_DEPTH": "3", "AGENT_MUX_MAX_COST_USD": "1.5"}
NO_PROC = Path("/nonexistent")


def process(proc: Path, pid: int, parent: int, environ: bytes = b"", name: str = "x") -> None:
    """Create a process as /proc shows it."""
    directory = proc / str(pid)
    directory.mkdir(parents=True)
    (directory / "stat").write_text(f"{pid} ({name}) S {parent} 1 1", "utf-8")
    (directory / "environ").write_bytes(environ)


def test_without_variables_there_are_no_limits() -> None:
    assert read_inherited_limits({}, NO_PROC) == InheritedLimits(0, None, None)


def test_the_environment_is_read() -> None:
    assert read_inherited_limits(DEEP, NO_PROC) == InheritedLimits(2, 3, 1.5)


def test_written_variables_are_read_as_the_same_limits() -> None:
    limits = InheritedLimits(2, 3, 0.25)
    assert read_inherited_limits(limits.environment(), NO_PROC) == limits
    assert InheritedLimits(1, 2).environment() == {"AGENT_MUX_DEPTH": "1", "AGENT_MUX_MAX_DEPTH": "2"}


@pytest.mark.parametrize("name", sorted(DEEP))
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "1e999", "\ud800", "1;rm"])
def test_an_invalid_variable_is_an_error(name: str, value: str) -> None:
    with pytest.raises(AgentMuxError, match=f"{name} is .*; allowed: a .*number >= 0, or unset"):
        read_inherited_limits({name: value}, NO_PROC)


def test_the_strictest_limit_of_all_ancestors_applies(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, b"AGENT_MUX_DEPTH=99\0")  # ignored: the first process of a machine is not an agent
    process(tmp_path, 10, 1, b"AGENT_MUX_DEPTH=1\0AGENT_MUX_MAX_DEPTH=4\0AGENT_MUX_MAX_COST_USD=3\0")
    process(tmp_path, 20, 10, b"AGENT_MUX_DEPTH=2\0X=\0AGENT_MUX_MAX_DEPTH=5\0AGENT_MUX_MAX_COST_USD=0.5\0", name=") (")
    process(tmp_path, 30, 20, b"PATH=/bin\0")
    assert read_inherited_limits({}, tmp_path, 30) == InheritedLimits(2, 4, 0.5)
    assert read_inherited_limits({"AGENT_MUX_DEPTH": "3"}, tmp_path, 30).depth == 3


def test_invalid_variables_of_ancestors_are_skipped(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, b"AGENT_MUX_DEPTH=2\0")
    process(tmp_path, 20, 10, b"AGENT_MUX_DEPTH=lots\0AGENT_MUX_MAX_DEPTH\0\xff=\xff\0")
    process(tmp_path, 30, 20)
    assert read_inherited_limits({}, tmp_path, 30) == InheritedLimits(2, None, None)


def test_a_loop_of_processes_ends(tmp_path: Path) -> None:
    process(tmp_path, 10, 20, b"AGENT_MUX_DEPTH=1\0")
    process(tmp_path, 20, 10)
    assert read_inherited_limits({}, tmp_path, 10).depth == 1


def test_processes_that_ended_or_are_unreadable_are_skipped(tmp_path: Path) -> None:
    process(tmp_path, 30, 20)
    assert read_inherited_limits({}, tmp_path, 30) == InheritedLimits()
    process(tmp_path, 20, 10)
    (tmp_path / "20" / "environ").unlink()
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "stat").write_text("10 (x)", "utf-8")
    assert read_inherited_limits({}, tmp_path, 30) == InheritedLimits()
