"""Links that are put in the way between looking and opening."""

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agent_loop.errors import WorkspaceError
from agent_loop.workspace import Workspace

SECRET = b"secret"


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("root/dir", "outside/dir"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root" / "dir" / "file").write_bytes(b"inside")
    (tmp_path / "root" / "plain").write_bytes(b"inside")
    for name in ("outside/file", "outside/dir/file"):
        (tmp_path / name).write_bytes(SECRET)
    return tmp_path / "root"


def replaced_by_link(root: Path, name: str, target: str) -> Callable[[], None]:
    def swap() -> None:
        (root / name).rename(root / "away")
        (root / name).symlink_to(target)

    return swap


def before_opening(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Do it right before `name` is opened for the first time: after everything that looks at it."""
    genuine, done = os.open, []

    def interposed(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == name and not done:
            done.append(True)
            act()
        return genuine(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", interposed)


@pytest.mark.parametrize("target", ["../outside", "ABSOLUTE"])
def test_a_directory_replaced_by_a_link_right_before_it_is_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    target = target.replace("ABSOLUTE", str(root.parent / "outside"))
    before_opening(monkeypatch, "dir", replaced_by_link(root, "dir", target))
    with pytest.raises(WorkspaceError, match="leads out of the workspace"):
        Workspace(root).read_bytes("dir/file")


def test_a_file_replaced_by_a_link_right_before_it_is_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_opening(monkeypatch, "plain", replaced_by_link(root, "plain", "../outside/file"))
    with pytest.raises(WorkspaceError, match="was replaced by a link"):
        Workspace(root).read_bytes("plain")


def test_a_file_replaced_by_a_pipe_right_before_it_is_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (root / "plain").unlink()
        os.mkfifo(root / "plain")

    before_opening(monkeypatch, "plain", swap)
    with pytest.raises(WorkspaceError, match="a pipe"):
        Workspace(root).read_bytes("plain")


def test_a_file_replaced_by_a_link_before_the_write_is_replaced_and_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = os.rename

    def interposed(source: str, target: str, **known: int) -> None:
        (root / "plain").unlink()
        (root / "plain").symlink_to("../outside/file")
        genuine(source, target, **known)

    monkeypatch.setattr(os, "rename", interposed)
    Workspace(root).write_bytes("plain", b"new")
    assert (root.parent / "outside" / "file").read_bytes() == SECRET
    assert (root / "plain").read_bytes() == b"new"
    assert not (root / "plain").is_symlink()


def test_link_created_in_place_of_a_new_directory_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = os.mkdir

    def interposed(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if path == "new":
            (root / "new").symlink_to("../outside")
        genuine(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", interposed)
    with pytest.raises(WorkspaceError, match="leads out of the workspace"):
        Workspace(root).write_bytes("new/file", b"new")
    assert (root.parent / "outside" / "file").read_bytes() == SECRET


def test_a_directory_moved_away_while_dots_lead_up_is_not_followed_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dir` is moved out of the root while we stand in it: the `..` of the disk would be outside."""
    (root / "dir" / "deep").mkdir()

    def move() -> None:
        (root / "dir").rename(root.parent / "moved")
        (root.parent / "plain").write_bytes(SECRET)

    before_opening(monkeypatch, "deep", move)
    with pytest.raises(WorkspaceError, match="does not exist"):
        Workspace(root).read_bytes("dir/deep/../../plain")


def test_a_walk_does_not_descend_into_a_directory_that_became_a_link(root: Path) -> None:
    walk = Workspace(root).walk(check=replaced_by_link(root, "dir", "../outside"))
    assert [entry.name for entry in walk] == ["plain"]


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Repeat an action in another thread."""
    stop = threading.Event()

    def keep_on() -> None:
        while not stop.is_set():
            swap()

    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=30)
    assert not thread.is_alive()


def test_reads_while_a_thread_swaps_a_directory_for_a_link_never_see_outside(root: Path) -> None:
    (root / "link").symlink_to("../outside")

    def swap() -> None:
        for source, target in (("dir", "held"), ("link", "dir"), ("dir", "link"), ("held", "dir")):
            (root / source).rename(root / target)

    seen: set[bytes | str] = set()
    with swapping(swap):
        for _ in range(500):
            try:
                seen.add(Workspace(root).read_bytes("dir/file"))
            except WorkspaceError as error:
                seen.add(str(error))
    assert seen
    assert SECRET not in seen


def test_writes_while_a_thread_turns_a_link_never_reach_outside(root: Path) -> None:
    """The link always is there: now it leads to a directory inside, now outside."""
    targets = itertools.cycle(["dir", "../outside"])
    (root / "link").symlink_to("dir")

    def swap() -> None:
        (root / "next").symlink_to(next(targets))
        (root / "next").rename(root / "link")

    before = names_in(root.parent / "outside")
    with swapping(swap):
        for _ in range(100):
            with suppress(WorkspaceError):
                Workspace(root).write_bytes("link/file", b"written")
    assert (root.parent / "outside" / "file").read_bytes() == SECRET
    assert names_in(root.parent / "outside") == before
    assert names_in(root / "dir") == ["file"]
