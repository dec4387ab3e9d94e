"""Shared files: atomic writes, permissions and locks."""

import stat
import threading
from pathlib import Path

import pytest

from agent_mux import AgentMuxError
from agent_mux._util.files import locked, make_directory, read_text, remove, write_text


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_line_endings_survive_writing_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    write_text(path, "one\r\ntwo\n")
    assert read_text(path) == "one\r\ntwo\n"
    assert [mode(one) for one in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    assert read_text(tmp_path / "nothing") is None


def test_write_keeps_permissions_and_symbolic_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old", "utf-8")
    real.chmod(0o644)
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert (real.read_text("utf-8"), mode(real)) == ("new", 0o644)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_failed_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "x").write_text("x", "utf-8")
    with pytest.raises(AgentMuxError, match="cannot write") as bad:
        write_text(path, "new")
    assert bad.value.code == "CONFIG_ERROR"
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(AgentMuxError, match="cannot read"):
        read_text(path)
    with pytest.raises(AgentMuxError, match="cannot remove"):
        remove(path)


def test_invalid_utf8_raises_with_the_position(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"ab\xff")
    with pytest.raises(AgentMuxError, match=r"is not UTF-8 \(byte 2\)"):
        read_text(tmp_path / "x")


def test_second_writer_raises_after_the_timeout(tmp_path: Path) -> None:
    path, locks = tmp_path / "x", tmp_path / "locks"
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path, locks=locks):
            holding.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert holding.wait(30)
        with pytest.raises(AgentMuxError, match=r"for more than 0\.05 s; try again") as bad, \
                locked(tmp_path / "." / "x", locks=locks, timeout=0.05):  # fmt: skip
            pass
        assert (bad.value.code, bad.value.recoverable) == ("CONFIG_LOCK_ERROR", True)
    finally:
        done.set()
        other.join(30)
    with locked(path, locks=locks, timeout=0.05):
        pass
    assert [mode(one) for one in (locks, *locks.iterdir())] == [0o700, 0o600]


def test_lock_that_cannot_be_created_raises(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("x", "utf-8")
    with pytest.raises(AgentMuxError, match="cannot create a lock"), locked(tmp_path / "x", locks=tmp_path / "locks"):
        pass


def test_new_directories_are_private(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b")
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    make_directory(tmp_path / "a" / "b")
