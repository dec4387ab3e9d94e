"""Files that others read, too: whole or not at all, by one writer at a time."""

import stat
import threading
from pathlib import Path

import pytest

from agent_mux import AgentMuxError
from agent_mux._util.files import locked, make_directory, read_text, remove, write_text


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_again_with_its_line_endings(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    write_text(path, "one\r\ntwo\n")
    assert read_text(path) == "one\r\ntwo\n"
    assert [mode(one) for one in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    assert read_text(tmp_path / "nothing") is None


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old", "utf-8")
    real.chmod(0o644)
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert (real.read_text("utf-8"), mode(real)) == ("new", 0o644)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left(tmp_path: Path) -> None:
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


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"ab\xff")
    with pytest.raises(AgentMuxError, match=r"is not UTF-8 \(byte 2\)"):
        read_text(tmp_path / "x")


def test_a_second_writer_waits_and_then_gives_up(tmp_path: Path) -> None:
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


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("x", "utf-8")
    with pytest.raises(AgentMuxError, match="cannot create a lock"), locked(tmp_path / "x", locks=tmp_path / "locks"):
        pass


def test_directories_are_private_or_as_the_umask_says(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b")
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]
    make_directory(tmp_path / "a" / "b")
