"""What a server learns of those above it: from its environment, and from that of its ancestors."""

from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.inheritance import Inherited, inherited

DEEP = {"AGENT_MUX_DEPTH": "2", "AGENT_MUX_MAX_DEPTH": "3", "AGENT_MUX_MAX_COST_USD": "1.5"}
NOBODY = Path("/nonexistent")


def process(proc: Path, pid: int, parent: int, environ: bytes = b"", name: str = "x") -> None:
    """As /proc shows one."""
    place = proc / str(pid)
    place.mkdir(parents=True)
    (place / "stat").write_text(f"{pid} ({name}) S {parent} 1 1", "utf-8")
    (place / "environ").write_bytes(environ)


def test_nobody_above() -> None:
    assert inherited({}, NOBODY) == Inherited(0, None, None)


def test_the_environment_counts() -> None:
    assert inherited(DEEP, NOBODY) == Inherited(2, 3, 1.5)


def test_what_is_told_to_those_below_is_what_they_read() -> None:
    said = Inherited(2, 3, 0.25)
    assert inherited(said.environment(), NOBODY) == said
    assert Inherited(1, 2).environment() == {"AGENT_MUX_DEPTH": "1", "AGENT_MUX_MAX_DEPTH": "2"}


@pytest.mark.parametrize("name", sorted(DEEP))
@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "1e999", "\ud800", "1;rm"])
def test_what_cannot_be_is_an_error(name: str, value: str) -> None:
    with pytest.raises(AgentMuxError, match=f"{name} is .*; it can be a .*number >= 0, or not be set"):
        inherited({name: value}, NOBODY)


def test_the_strictest_of_all_ancestors_counts(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, b"AGENT_MUX_DEPTH=99\0")  # not asked: the first process of a machine is nobody's agent
    process(tmp_path, 10, 1, b"AGENT_MUX_DEPTH=1\0AGENT_MUX_MAX_DEPTH=4\0AGENT_MUX_MAX_COST_USD=3\0")
    process(tmp_path, 20, 10, b"AGENT_MUX_DEPTH=2\0X=\0AGENT_MUX_MAX_DEPTH=5\0AGENT_MUX_MAX_COST_USD=0.5\0", name=") (")
    process(tmp_path, 30, 20, b"PATH=/bin\0")
    assert inherited({}, tmp_path, 30) == Inherited(2, 4, 0.5)
    assert inherited({"AGENT_MUX_DEPTH": "3"}, tmp_path, 30).depth == 3


def test_what_ancestors_say_wrongly_is_passed_over(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, b"AGENT_MUX_DEPTH=2\0")
    process(tmp_path, 20, 10, b"AGENT_MUX_DEPTH=lots\0AGENT_MUX_MAX_DEPTH\0\xff=\xff\0")
    process(tmp_path, 30, 20)
    assert inherited({}, tmp_path, 30) == Inherited(2, None, None)


def test_a_loop_of_processes_ends(tmp_path: Path) -> None:
    process(tmp_path, 10, 20, b"AGENT_MUX_DEPTH=1\0")
    process(tmp_path, 20, 10)
    assert inherited({}, tmp_path, 10).depth == 1


def test_processes_that_are_gone_or_not_ours(tmp_path: Path) -> None:
    process(tmp_path, 30, 20)
    assert inherited({}, tmp_path, 30) == Inherited()
    process(tmp_path, 20, 10)
    (tmp_path / "20" / "environ").unlink()
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "stat").write_text("10 (x)", "utf-8")
    assert inherited({}, tmp_path, 30) == Inherited()
